import type { Answer } from './answer.js';
import { type Check, range } from './check.js';
import { expect, expectEqual, expectProblem, expectStatus } from './expect.js';
import { MEDIA, type Target } from './target.js';

/** Publishes of a producer whose answers are remembered at least; the contract says the last and the seven before. */
const REMEMBERED = 8;

interface Attempt {
  readonly seq: number;
  readonly epoch?: number;
  readonly body?: string;
  readonly more?: Readonly<Record<string, string>>;
}

function publishAs(target: Target, stream: string, id: string, attempt: Attempt): Promise<Answer> {
  const { seq, epoch = 0, body = `publish ${epoch}/${seq}`, more = {} } = attempt;
  const headers = {
    'Producer-Id': id,
    'Producer-Epoch': String(epoch),
    'Producer-Seq': String(seq),
    ...more,
  };
  return target.post(stream, body, MEDIA.text, headers);
}

function expectAnswer(answer: Answer, where: object, isDuplicate: boolean, what: string): void {
  expectStatus(answer, 200, what);
  expectEqual(answer.json(), where, `${what}: where it stands`);
  expectEqual(
    answer.header('gapless-duplicate'),
    isDuplicate ? 'true' : undefined,
    `${what}: Gapless-Duplicate`,
  );
}

export const exactlyOnceChecks: Check[] = [
  {
    section: '3.4',
    what: 'a repeat of a producer is answered as the first time, marked, and not appended again',
    async run(target) {
      const { name, epoch } = await target.createStream();
      for (const seq of range(0, REMEMBERED - 1)) {
        const where = { epoch, first: seq + 1, last: seq + 1 };
        expectAnswer(await publishAs(target, name, 'a', { seq }), where, false, `publish ${seq}`);
      }
      for (const seq of range(0, REMEMBERED - 1)) {
        const where = { epoch, first: seq + 1, last: seq + 1 };
        expectAnswer(await publishAs(target, name, 'a', { seq }), where, true, `publish ${seq} again`);
      }
      expectEqual((await target.positions(name)).head, REMEMBERED, 'the head after all repeats');
    },
  },
  {
    section: '3.4',
    what: 'a producer that skips is 409 producer_gap with the seq that has to come, and one of an older epoch 403 producer_fenced',
    async run(target) {
      const { name } = await target.createStream();
      const ask = (attempt: Attempt) => publishAs(target, name, 'a', attempt);
      const gap = expectProblem(await ask({ seq: 1 }), 409, 'producer_gap', 'a first seq of 1');
      expectEqual(gap.expected, 0, 'the seq that has to come first');
      expectStatus(await ask({ seq: 0, epoch: 3 }), 200, 'the first publish');
      const skipped = expectProblem(
        await ask({ seq: 2, epoch: 3 }),
        409,
        'producer_gap',
        'a seq of 2 after 0',
      );
      expectEqual(skipped.expected, 1, 'the seq that has to come');
      const fenced = expectProblem(await ask({ seq: 0, epoch: 2 }), 403, 'producer_fenced', 'an older epoch');
      expectEqual(fenced.producerEpoch, 3, 'the newest epoch');
      expectStatus(await ask({ seq: 0, epoch: 4 }), 200, 'a newer epoch');
      expectProblem(await ask({ seq: 1, epoch: 3 }), 403, 'producer_fenced', 'the epoch before');
      expectEqual((await target.positions(name)).head, 2, 'the head');
    },
  },
  {
    section: '3.4',
    what: 'what is refused does not count, and a repeat is answered after the stream was closed too',
    async run(target) {
      const { name, epoch } = await target.createStream();
      const elsewhere = { 'Gapless-If-Head': `${epoch}.7` };
      expectStatus(await publishAs(target, name, 'a', { seq: 0, more: elsewhere }), 412, 'at another head');
      const where = { epoch, first: 1, last: 1 };
      expectAnswer(await publishAs(target, name, 'a', { seq: 0 }), where, false, 'the same seq after a 412');
      const path = `/v1/streams/${name}/close`;
      expectStatus(await target.exchange({ method: 'POST', path }), 200, 'closing');
      expectAnswer(await publishAs(target, name, 'a', { seq: 0 }), where, true, 'a repeat after the end');
      expectProblem(
        await publishAs(target, name, 'a', { seq: 1 }),
        409,
        'stream_closed',
        'a new one after the end',
      );
    },
  },
  {
    section: '3.4',
    what: 'a key counts once: a repeat is answered as the first time, whatever its body',
    async run(target) {
      const { name, epoch } = await target.createStream();
      const post = (key: string, body: string) =>
        target.post(name, body, MEDIA.text, { 'Idempotency-Key': key });
      expectAnswer(await post('one', 'first'), { epoch, first: 1, last: 1 }, false, 'the first of a key');
      expectAnswer(await post('two', 'other'), { epoch, first: 2, last: 2 }, false, 'the first of another');
      expectAnswer(await post('one', 'changed'), { epoch, first: 1, last: 1 }, true, 'a repeat');
      const page = (await target.page(name)).json() as { events: { data: string }[] };
      expectEqual(
        page.events.map(({ data }) => data),
        ['first', 'other'],
        'the events',
      );
    },
  },
  {
    section: '3.4',
    what: 'of many repeats at once one is appended, and all are told where',
    async run(target) {
      const { name, epoch } = await target.createStream();
      const answers = await Promise.all(
        range(1, 12).map(() => target.post(name, 'once', MEDIA.text, { 'Idempotency-Key': 'same' })),
      );
      for (const answer of answers)
        expectEqual(answer.json(), { epoch, first: 1, last: 1 }, 'where it stands');
      const first = answers.filter((answer) => answer.header('gapless-duplicate') === undefined);
      expectEqual(first.length, 1, 'answers that are no repeats');
      expectEqual((await target.positions(name)).head, 1, 'the head');
    },
  },
  {
    section: '3.4',
    what: 'a producer without its counts, counts that are none, and a producer with a key are 400 invalid_producer',
    async run(target) {
      const { name } = await target.createStream();
      const whole = { 'Producer-Id': 'a', 'Producer-Epoch': '0', 'Producer-Seq': '0' };
      for (const headers of [
        { 'Producer-Id': 'a' },
        { 'Producer-Epoch': '0', 'Producer-Seq': '0' },
        { ...whole, 'Producer-Seq': '-1' },
        { ...whole, 'Producer-Seq': '01' },
        { ...whole, 'Producer-Epoch': '9007199254740992' },
        { ...whole, 'Producer-Id': 'x'.repeat(257) },
        { ...whole, 'Idempotency-Key': 'k' },
      ]) {
        const answer = await target.post(name, 'x', MEDIA.text, headers as Record<string, string>);
        expectProblem(answer, 400, 'invalid_producer', JSON.stringify(headers).slice(0, 100));
      }
      expect((await target.positions(name)).head === 0, 'something was appended');
    },
  },
];
