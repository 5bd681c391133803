import { type Check, range, type Section } from './check.js';
import { expect, expectCursor, expectEqual, expectProblem } from './expect.js';
import type { Target } from './target.js';

const MALFORMED_SEQS = ['', '-1', '%2B1', '01', '1.0', '1e0', ' 1', '0x1', '9007199254740992', 'NaN', '1_0'];

const checks: Check[] = [
  {
    section: '1',
    what: 'an epoch is 8 to 16 characters of [a-z0-9], and each creation has another',
    async run(target) {
      const name = target.freshName('epochs');
      const epochs = new Set<string>();
      for (const _creation of range(1, 10)) {
        const { epoch } = (await target.put(name, {})).json() as { epoch: string };
        expect(/^[a-z0-9]{8,16}$/.test(epoch), `${epoch} is no epoch`);
        expect(!epochs.has(epoch), `the epoch ${epoch} was given twice`);
        epochs.add(epoch);
        await target.exchange({ method: 'DELETE', path: `/v1/streams/${name}` });
      }
    },
  },
  {
    section: '1',
    what: 'seqs count from 1 by one, and an event has its cursor as its id',
    async run(target) {
      const { name, epoch } = await target.createStream();
      await target.publishLines(name, ['a', 'b']);
      await target.publish(name, 'c');
      const subscription = await target.subscribe(name, { query: 'cursor=earliest' });
      await subscription.untilEvents(3);
      subscription.close();
      const ids = subscription.events.map(({ id }) => expectCursor(id, 'the id of an event'));
      expectEqual(
        ids,
        range(1, 3).map((seq) => ({ epoch, seq })),
        'the ids of three events',
      );
    },
  },
  {
    section: '1',
    what: 'a cursor that is not in the exact form is malformed, whatever it might mean',
    async run(target) {
      const { name, epoch } = await target.createStream();
      await target.publish(name, 'one');
      const cursors = [
        ...MALFORMED_SEQS.map((seq) => `${epoch}.${encodeURI(seq)}`),
        ...[
          epoch,
          `.1`,
          `${epoch}:1`,
          `${epoch.toUpperCase()}A.1`,
          'abc.1',
          `${'a'.repeat(17)}.1`,
          'Earliest',
        ],
      ];
      for (const cursor of cursors) await expectMalformed(target, name, cursor);
    },
  },
  {
    section: '1',
    what: '(epoch, seq) names one content, for a subscription, a page and a later reader alike',
    async run(target) {
      const { name } = await target.createStream();
      const contents = range(1, 20).map((index) => `content ${index}`);
      await target.publishLines(name, contents);
      const first = await target.subscribe(name, { query: 'cursor=earliest' });
      await first.untilEvents(20);
      first.close();
      await target.publish(name, 'more');
      const second = await target.subscribe(name, { query: 'cursor=earliest' });
      await second.untilEvents(20);
      second.close();
      const page = (await target.page(name, 'limit=20')).json() as { events: { id: string; data: string }[] };
      const seen = first.events.map(({ id, data }) => ({ id, data }));
      expectEqual(
        seen.map(({ data }) => data),
        contents,
        'what was published',
      );
      expectEqual(
        second.events.slice(0, 20).map(({ id, data }) => ({ id, data })),
        seen,
        'the second subscription',
      );
      expectEqual(
        page.events.map(({ id, data }) => ({ id, data })),
        seen,
        'the page',
      );
    },
  },
];

async function expectMalformed(target: Target, stream: string, cursor: string): Promise<void> {
  const subscription = await target.ask(stream, { query: `cursor=${cursor}` });
  if (subscription.status === 200) subscription.close();
  expect(subscription.status !== 200, `?cursor=${cursor} was accepted`);
  expectProblem(await subscription.refusal(), 400, 'malformed', `?cursor=${cursor}`);
}

export const terms: Section = { number: '1', title: 'Terms', checks };
