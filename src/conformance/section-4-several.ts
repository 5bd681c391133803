import { type Check, range } from './check.js';
import type { EventStream } from './event-stream.js';
import { expect, expectCursor, expectEqual, expectProblem, type Problem } from './expect.js';
import { filledStream } from './filled-stream.js';
import type { Target } from './target.js';

const STREAMS_MAX = 16;
const ID_LENGTH_MAX = 127;

interface Told {
  readonly stream: string;
  readonly id: string;
}

function queryOf(names: readonly string[], ...more: readonly string[]): string {
  return [...names.map((name) => `stream=${name}`), ...more].join('&');
}

async function filled(
  target: Target,
  count: number,
  events: number,
): Promise<{ name: string; epoch: string }[]> {
  return Promise.all(range(1, count).map(() => filledStream(target, events)));
}

/** The seqs that came of a stream, held to its epoch. */
function seqsOf({ events }: EventStream, { name, epoch }: { name: string; epoch: string }): number[] {
  const own = events
    .map(({ data }) => JSON.parse(data ?? 'null') as Told)
    .filter(({ stream }) => stream === name);
  return own.map(({ id }) => {
    const cursor = expectCursor(id, `the id of an event of ${name}`);
    expectEqual(cursor.epoch, epoch, `the epoch of an event of ${name}`);
    return cursor.seq;
  });
}

export const severalChecks: Check[] = [
  {
    section: '4.10',
    what: 'the events of each stream come in order with their own ids, and the id of the whole resumes them all, wherever it breaks',
    async run(target) {
      const streams = await filled(target, 3, 6);
      const names = streams.map(({ name }) => name);
      const seen = new Map<string, number[]>(names.map((name) => [name, []]));
      let lastEventId: string | undefined;
      for (let count = 0; count < 18; ) {
        const query = queryOf(names, ...(lastEventId === undefined ? ['cursor=earliest'] : []));
        const part = await target.subscribeToMany({ query, lastEventId });
        await part.untilEvents(Math.min(4, 18 - count));
        part.close();
        expect(part.lastId.length <= ID_LENGTH_MAX, `the id has ${part.lastId.length} characters`);
        expect(/^[A-Za-z0-9._-]+$/.test(part.lastId), `browsers do not send the id ${part.lastId}`);
        for (const stream of streams) seen.get(stream.name)?.push(...seqsOf(part, stream));
        count += part.events.length;
        lastEventId = part.lastId;
      }
      for (const { name } of streams) expectEqual(seen.get(name), range(1, 6), `the seqs of ${name}`);
    },
  },
  {
    section: '4.10',
    what: 'it may begin at a cursor of each, and only those that cannot are refused, each with its reason',
    async run(target) {
      const streams = await filled(target, 3, 5);
      const names = streams.map(({ name }) => name);
      const [a, b, c] = streams as [(typeof streams)[0], (typeof streams)[0], (typeof streams)[0]];
      const own = queryOf(names, `cursor=${a.epoch}.3`, 'cursor=earliest', `cursor=${c.epoch}.5`);
      const subscription = await target.subscribeToMany({ query: own });
      await subscription.untilEvents(7);
      subscription.close();
      expectEqual(
        streams.map((stream) => seqsOf(subscription, stream)),
        [[4, 5], range(1, 5), []],
        'the seqs of each',
      );
      const wrong = queryOf(names, `cursor=${a.epoch}.6`, `cursor=${b.epoch}.1`, 'cursor=zzzzzzzzzz.1');
      const refused = await target.askMany({ query: wrong });
      const problem = expectProblem(await refused.refusal(), 410, 'resume_unavailable', 'two of three');
      expectEqual(
        (problem.streams as Problem[]).map(({ stream, reason }) => [stream, reason]),
        [
          [a.name, 'ahead_of_head'],
          [c.name, 'epoch_changed'],
        ],
        'the streams that are refused',
      );
    },
  },
  {
    section: '4.10',
    what: 'other streams than those of the id are refused before any event, or told in-band and followed from their heads',
    async run(target) {
      const streams = await filled(target, 2, 3);
      const names = streams.map(({ name }) => name);
      const first = await target.subscribeToMany({ query: queryOf(names, 'cursor=earliest') });
      await first.untilEvents(6);
      first.close();
      const reversed = queryOf([...names].reverse());
      const refused = await target.askMany({ query: reversed, lastEventId: first.lastId });
      const problem = expectProblem(await refused.refusal(), 410, 'resume_unavailable', 'another order');
      expectEqual(problem.reason, 'epoch_changed', 'the reason');
      const told = await target.subscribeToMany({
        query: `${reversed}&on_unavailable=event`,
        lastEventId: first.lastId,
      });
      await told.untilEvents(2);
      expectEqual(
        told.events.map(({ event }) => event),
        ['resume_unavailable', 'resume_unavailable'],
        'what is told',
      );
      await target.publish(names[0] as string, 'after');
      await told.untilEvents(3);
      told.close();
      expectEqual((JSON.parse(told.events[2]?.data ?? 'null') as Told).stream, names[0], 'what follows');
    },
  },
  {
    section: '4.10',
    what: 'a stream that is closed is told with its name, and the answer ends when all are',
    async run(target) {
      const streams = await filled(target, 2, 1);
      const query = queryOf(
        streams.map(({ name }) => name),
        'cursor=earliest',
      );
      const subscription = await target.subscribeToMany({ query });
      await subscription.untilEvents(2);
      for (const [index, { name }] of streams.entries()) {
        await target.exchange({ method: 'POST', path: `/v1/streams/${name}/close` });
        await subscription.untilEvents(3 + index);
        const { event, data } = subscription.events.at(-1) ?? {};
        expectEqual(
          [event, (JSON.parse(data ?? 'null') as Told).stream],
          ['stream_closed', name],
          'what is told',
        );
      }
      expectEqual(await subscription.untilEnded(), 'end', 'how it ends');
      const again = await target.askMany({ query, lastEventId: subscription.lastId });
      expectEqual(again.status, 204, 'the status at the end of all');
    },
  },
  {
    section: '4.10',
    what: 'no stream, more than 16, one twice, a subscriber, and cursors of another number are 400 invalid_query',
    async run(target) {
      const { name } = await filledStream(target, 1);
      const many = range(0, STREAMS_MAX).map((index) => `${name}-${index}`);
      for (const query of [
        '',
        queryOf(many),
        queryOf([name, name]),
        queryOf([name], 'subscriber=a'),
        queryOf([name, `${name}-1`, `${name}-2`], 'cursor=earliest', 'cursor=earliest'),
      ]) {
        const answer = await (await target.askMany({ query })).refusal();
        expectProblem(answer, 400, 'invalid_query', query.slice(0, 80));
      }
    },
  },
];
