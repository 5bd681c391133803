import type { Check } from './check.js';
import type { EventStream } from './event-stream.js';
import { expect, expectCursor, expectEqual, expectProblem, expectStatus, type Problem } from './expect.js';
import { evictedStream, filledStream } from './filled-stream.js';
import { positionsOf, type Target } from './target.js';

interface Expected {
  stream: string;
  reason: string;
  cursor: string;
}

/** Asks for a resume that must be refused, and holds the refusal to contract 4.4. */
async function expectRefused(target: Target, { stream, reason, cursor }: Expected): Promise<Problem> {
  const subscription = await target.ask(stream, { lastEventId: cursor });
  if (subscription.status === 200) await subscription.untilPrimed().finally(() => subscription.close());
  const answer = await subscription.refusal();
  const problem = expectProblem(answer, 410, 'resume_unavailable', `resuming at ${cursor}`);
  expectEqual([problem.reason, problem.cursor], [reason, cursor], 'reason and cursor of the refusal');
  if (problem.epoch === null) return problem;
  const { epoch, floor, head } = positionsOf((name) => answer.header(name), 'the refusal');
  expectEqual([problem.epoch, problem.floor, problem.head], [epoch, floor, head], 'positions in the body');
  expectEqual(problem.earliest, `${epoch}.${floor - 1}`, 'the earliest cursor that works');
  return problem;
}

/** From the cursor that a refusal names as the earliest, the very next event must come. */
async function expectWorks(target: Target, stream: string, earliest: unknown): Promise<void> {
  const { seq } = expectCursor(earliest, 'earliest');
  const subscription = await target.subscribe(stream, { lastEventId: String(earliest) });
  await subscription.untilEvents(1);
  subscription.close();
  expectEqual(subscription.seqs[0], seq + 1, 'the first event after `earliest`');
}

/** The event of contract 4.5, which must be the only one; returns its id and what it says. */
async function inBand(subscription: EventStream): Promise<{ id: string; problem: Problem }> {
  expectEqual(await subscription.untilEnded(), 'end', 'how it ends');
  const [event, ...more] = subscription.events;
  expectEqual(more.length, 0, 'events beside the refusal');
  expectEqual(event?.event, 'resume_unavailable', 'the type of the only event');
  return { id: event?.id ?? '', problem: JSON.parse(event?.data ?? 'null') as Problem };
}

export const refusalChecks: Check[] = [
  {
    section: '4.4',
    what: 'at the newest event it is live, and the next event is the one after it',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      const subscription = await target.subscribe(name, { lastEventId: `${epoch}.3` });
      await subscription.untilPrimed();
      await target.publish(name, 'new');
      await subscription.untilEvents(1);
      subscription.close();
      expectEqual(subscription.seqs, [4], 'the seqs after the newest event');
    },
  },
  {
    section: '4.4',
    what: 'a cursor of another epoch is refused, epoch_changed',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      const expected = { stream: name, reason: 'epoch_changed', cursor: 'abcdefghij.2' };
      const { epoch: now, earliest } = await expectRefused(target, expected);
      expectEqual(now, epoch, 'the epoch in the refusal');
      await expectWorks(target, name, earliest);
    },
  },
  {
    section: '4.4',
    what: 'a cursor of a deleted stream is refused, also when the name was made anew',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      await target.exchange({ method: 'DELETE', path: `/v1/streams/${name}` });
      const expected = { stream: name, reason: 'epoch_changed', cursor: `${epoch}.2` };
      const { epoch: none, floor, head, earliest } = await expectRefused(target, expected);
      expectEqual([none, floor, head, earliest], [null, null, null, null], 'the positions of no stream');
      expectStatus(await target.put(name, {}), 201, 'creating it again');
      await target.publishLines(name, ['a', 'b', 'c', 'd']);
      await expectRefused(target, expected);
    },
  },
  {
    section: '4.4',
    what: 'a cursor beyond the newest event is refused, ahead_of_head',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      for (const seq of [4, 2 ** 53 - 1]) {
        const expected = { stream: name, reason: 'ahead_of_head', cursor: `${epoch}.${seq}` };
        const { head, earliest } = await expectRefused(target, expected);
        expectEqual(head, 3, 'the head in the refusal');
        await expectWorks(target, name, earliest);
      }
    },
  },
  {
    section: '4.4',
    what: 'a cursor whose next event is gone is refused, evicted, and at the floor reading is exact',
    async run(target) {
      const { name, epoch } = await evictedStream(target);
      const { floor, head } = await target.positions(name);
      for (const seq of [0, 1, floor - 2]) {
        const problem = await expectRefused(target, {
          stream: name,
          reason: 'evicted',
          cursor: `${epoch}.${seq}`,
        });
        expectEqual([problem.floor, problem.head], [floor, head], 'floor and head in the refusal');
        await expectWorks(target, name, problem.earliest);
      }
      const subscription = await target.subscribe(name, { lastEventId: `${epoch}.${floor - 1}` });
      await subscription.untilEvents(head - floor + 1);
      subscription.close();
      expectEqual(
        [subscription.seqs[0], subscription.seqs.at(-1)],
        [floor, head],
        'the first seq and the last',
      );
    },
  },
  {
    section: '4.4',
    what: '`earliest`, `latest` and no cursor are never refused',
    async run(target) {
      const { name } = await evictedStream(target);
      for (const where of [{ query: 'cursor=earliest' }, { query: 'cursor=latest' }, {}]) {
        const subscription = await target.subscribe(name, where);
        await subscription.untilPrimed();
        subscription.close();
      }
    },
  },
  {
    section: '4.5',
    what: '`?on_unavailable=event` tells it in-band, with the head as its id and a proper end, and one can go on there',
    async run(target) {
      const { name, epoch } = await evictedStream(target);
      const query = 'on_unavailable=event';
      for (const [cursor, reason] of [
        [`${epoch}.1`, 'evicted'],
        [`${epoch}.999999`, 'ahead_of_head'],
        ['abcdefghij.1', 'epoch_changed'],
      ] as const) {
        const plain = await expectRefused(target, { stream: name, reason, cursor });
        const { id, problem } = await inBand(await target.subscribe(name, { lastEventId: cursor, query }));
        expectEqual(problem, plain, 'the refusal in-band, against the plain one');
        expectEqual(id, `${epoch}.${problem.head}`, 'the id of the event');
      }
      const { head } = await target.positions(name);
      const back = await target.subscribe(name, { lastEventId: `${epoch}.${head}`, query });
      await back.untilPrimed();
      await target.publish(name, 'new');
      await back.untilEvents(1);
      back.close();
      expectEqual(back.seqs, [head + 1], 'the seqs of one that comes back with that id');
    },
  },
  {
    section: '4.5',
    what: 'a malformed cursor is 400 all the same, and another value of the parameter 400 invalid_query',
    async run(target) {
      const { name } = await filledStream(target, 1);
      const ask = async (query: string) => (await target.ask(name, { query })).refusal();
      expectProblem(await ask('on_unavailable=event&cursor=x'), 400, 'malformed', 'a malformed cursor');
      expectProblem(await ask('on_unavailable=close'), 400, 'invalid_query', 'on_unavailable=close');
      const accepted = await target.ask(name, { query: 'on_unavailable=event' });
      expect(accepted.status === 200, `without a cursor it is ${accepted.status}`);
      accepted.close();
    },
  },
];
