import { type Check, range, type Section } from './check.js';
import { expect, expectEqual, expectProblem, expectStatus, skip } from './expect.js';
import { bodyChecks } from './section-3-bodies.js';
import { exactlyOnceChecks } from './section-3-exactly-once.js';
import { heldChecks } from './section-3-held.js';
import { MEDIA, type Target } from './target.js';

const EVENT_BYTES_TRIED_MAX = 4 * 1024 * 1024;
const TYPE_BYTES_MAX = 128;

const types: Check[] = [
  {
    section: '3.2',
    what: 'Gapless-Event is the type of events that do not name their own; empty and `message` are none',
    async run(target) {
      const { name } = await target.createStream();
      const longest = 'x'.repeat(TYPE_BYTES_MAX);
      for (const type of ['tick', longest, 'message', ''])
        await target.publish(name, type, MEDIA.text, { 'Gapless-Event': type });
      await target.publish(name, '[{"type":"own","data":"a"},{"data":"b"}]', MEDIA.batch, {
        'Gapless-Event': 'tick',
      });
      const subscription = await target.subscribe(name, { query: 'cursor=earliest' });
      await subscription.untilEvents(6);
      subscription.close();
      const arrived = subscription.events.map(({ event }) => event ?? 'none');
      expectEqual(arrived, ['tick', longest, 'none', 'none', 'own', 'tick'], 'the types that arrive');
    },
  },
  {
    section: '3.2',
    what: 'a type of more than 128 bytes is 400 invalid_event_type, a word of the server 400 reserved_type',
    async run(target) {
      const { name } = await target.createStream();
      const long = 'x'.repeat(TYPE_BYTES_MAX + 1);
      const post = (type: string) => target.post(name, 'x', MEDIA.text, { 'Gapless-Event': type });
      expectProblem(await post(long), 400, 'invalid_event_type', '129 bytes');
      const batch = JSON.stringify([{ data: 'good' }, { type: 'a\nb', data: 'x' }]);
      expectProblem(
        await target.post(name, batch, MEDIA.batch),
        400,
        'invalid_event_type',
        'a break in a type',
      );
      for (const word of ['stream_closed', 'stream_deleted', 'resume_unavailable']) {
        expectProblem(await post(word), 400, 'reserved_type', word);
        const own = JSON.stringify([{ data: 'good' }, { type: word, data: 'x' }]);
        expectProblem(await target.post(name, own, MEDIA.batch), 400, 'reserved_type', `${word} in a batch`);
      }
      expectEqual((await target.positions(name)).head, 0, 'the head after the refusals');
    },
  },
];

const answers: Check[] = [
  {
    section: '3.3',
    what: 'the answer names epoch, first and last seq, and what was answered before another began has smaller seqs',
    async run(target) {
      const { name, epoch } = await target.createStream();
      let head = 0;
      for (const events of [1, 3, 2]) {
        const published = await target.publishLines(name, range(1, events).map(String));
        expectEqual(published, { epoch, first: head + 1, last: head + events }, 'the answer to a publish');
        head += events;
      }
    },
  },
  {
    section: '3.3',
    what: 'what was answered can be read at once, by a page and by a subscription',
    async run(target) {
      const { name } = await target.createStream();
      for (const index of range(1, 20)) {
        const { last } = await target.publish(name, `event ${index}`);
        const { head } = await target.positions(name);
        expect(head >= last, `${last} was answered, and the head is ${head}`);
        const page = (await target.page(name, 'limit=1000')).json() as { events: unknown[] };
        expectEqual(page.events.length, last, 'events of a page after the answer');
      }
    },
  },
];

const conditional: Check[] = [
  {
    section: '3.5',
    what: 'Gapless-If-Head appends at that head, and is 412 head_mismatch elsewhere, with the head, and appends nothing',
    async run(target) {
      const { name, epoch } = await target.createStream();
      const at = (cursor: string) => target.post(name, 'x', MEDIA.text, { 'Gapless-If-Head': cursor });
      expectStatus(await at(`${epoch}.0`), 200, 'the head of a stream without events');
      expectStatus(await at(`${epoch}.1`), 200, 'the head');
      for (const cursor of [`${epoch}.1`, `${epoch}.3`, 'abcdefghij.2']) {
        const answer = await at(cursor);
        const { head } = expectProblem(answer, 412, 'head_mismatch', `Gapless-If-Head: ${cursor} at 2`);
        expectEqual(head, `${epoch}.2`, 'the head in the refusal');
        expectEqual(answer.header('gapless-cursor'), `${epoch}.2`, 'Gapless-Cursor of the refusal');
      }
      expectProblem(await at('latest'), 400, 'malformed', 'a word for a cursor');
      expectEqual((await target.positions(name)).head, 2, 'the head after all');
    },
  },
  {
    section: '3.5',
    what: 'where there is no stream, it is 412 with `head` null',
    async run(target) {
      const name = target.freshName();
      const answer = await target.post(name, 'x', MEDIA.text, { 'Gapless-If-Head': 'abcdefghij.0' });
      const { head } = expectProblem(answer, 412, 'head_mismatch', 'no stream');
      expectEqual(head, null, 'the head of no stream');
      expectStatus(await target.get(`/v1/streams/${name}/state`), 404, 'the state after that');
    },
  },
  {
    section: '3.5',
    what: 'of many who try at one head, one appends',
    async run(target) {
      const { name, epoch } = await target.createStream();
      for (const head of range(0, 4)) {
        const tries = range(1, 8).map(() =>
          target.post(name, 'x', MEDIA.text, { 'Gapless-If-Head': `${epoch}.${head}` }),
        );
        const statuses = (await Promise.all(tries)).map(({ status }) => status);
        expectEqual(statuses.sort(), [200, 412, 412, 412, 412, 412, 412, 412], 'the answers to eight tries');
      }
    },
  },
];

const limits: Check[] = [
  {
    section: '3.6',
    what: 'a body that is announced as too large is 413 body_too_large before it comes',
    async run(target) {
      const { name } = await target.createStream();
      const headers = { 'Content-Type': MEDIA.text, 'Content-Length': '99999999999' };
      const path = `/v1/streams/${name}`;
      const answer = await target.exchange({
        method: 'POST',
        path,
        headers,
        body: 'begin',
        isUnfinished: true,
      });
      expectProblem(answer, 413, 'body_too_large', 'a body of 100 GB');
      expectEqual((await target.positions(name)).head, 0, 'the head after that');
    },
  },
  {
    section: '3.6',
    what: 'an event of exactly the limit is taken, and one byte more is 413 event_too_large with the limit',
    async run(target) {
      const { name } = await target.createStream();
      const limit = await eventLimit(target, name);
      const { head } = await target.positions(name);
      await target.publish(name, 'x'.repeat(limit));
      expectProblem(
        await target.post(name, 'x'.repeat(limit + 1)),
        413,
        'event_too_large',
        `${limit} bytes and one`,
      );
      expectEqual((await target.positions(name)).head, head + 1, 'the head after both');
    },
  },
  {
    section: '3.6',
    what: 'publishers who are faster than the disk are told 429 backpressure',
    run: async () => skip('needs a durable log on a slow disk'),
  },
  {
    section: '3.6',
    what: 'a log that cannot be written to is 507 log_full or 503 log_unavailable, and nothing is appended',
    run: async () => skip('needs a durable log on a full disk'),
  },
];

/** The limit, as the refusal of too large an event names it. */
async function eventLimit(target: Target, stream: string): Promise<number> {
  for (let bytes = 64 * 1024; bytes <= EVENT_BYTES_TRIED_MAX; bytes *= 2) {
    const answer = await target.post(stream, 'x'.repeat(bytes + 1));
    if (answer.status === 200) continue;
    if ((answer.json() as { code?: string }).code === 'body_too_large')
      return skip(
        'bodies are limited to less than one event; needs --body-bytes-max above --event-bytes-max',
      );
    const { limit } = expectProblem(answer, 413, 'event_too_large', `an event of ${bytes + 1} bytes`);
    expect(
      typeof limit === 'number' && limit <= bytes,
      `${bytes + 1} bytes were refused, with the limit ${limit}`,
    );
    return limit;
  }
  return skip(`takes events of ${EVENT_BYTES_TRIED_MAX} bytes; needs --event-bytes-max below that`);
}

export const publish: Section = {
  number: '3',
  title: 'Publish',
  checks: [
    ...bodyChecks,
    ...types,
    ...answers,
    ...exactlyOnceChecks,
    ...conditional,
    ...limits,
    ...heldChecks,
  ],
};
