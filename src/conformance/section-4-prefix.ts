import { type Check, range } from './check.js';
import type { EventStream } from './event-stream.js';
import { expect, expectCursor, expectEqual, expectProblem, expectStatus } from './expect.js';
import type { Target } from './target.js';

const ID_LENGTH_MAX = 127;

interface Told {
  readonly stream: string;
  readonly id: string;
}

/** Streams whose names begin so, and no others. */
async function filled(
  target: Target,
  names: readonly string[],
  events: number,
): Promise<{ prefix: string; streams: string[] }> {
  const prefix = `${target.freshName()}-`;
  const streams: string[] = [];
  for (const name of names) {
    const stream = await made(target, prefix + name);
    await target.publishLines(stream, range(1, events).map(String));
    streams.push(stream);
  }
  return { prefix, streams };
}

async function made(target: Target, name: string): Promise<string> {
  expectStatus(await target.put(target.named(name), {}), 201, 'creating a stream');
  return name;
}

/** The seqs that came of a stream. */
function seqsOf({ events }: EventStream, stream: string): number[] {
  return events
    .map(({ data }) => JSON.parse(data ?? 'null') as Told)
    .filter((told) => told.stream === stream && told.id !== undefined)
    .map(({ id }) => expectCursor(id, `the id of an event of ${stream}`).seq);
}

export const prefixChecks: Check[] = [
  {
    section: '4.11',
    what: 'each id resumes all streams whose names begin so, not only the newest, and those come along that are made meanwhile',
    async run(target) {
      const { prefix, streams } = await filled(target, ['a', 'b', 'c'], 4);
      const query = `prefix=${prefix}`;
      const whole = await target.subscribeToMany({ query: `${query}&cursor=earliest` });
      await whole.untilEvents(12);
      whole.close();
      const late = await made(target, `${prefix}late`);
      await target.publishLines(late, ['1', '2']);
      const ids = whole.events.map(({ id }) => id ?? '');
      expectEqual(new Set(ids).size, 12, 'the number of different ids');
      const told = whole.events.map(({ data }) => JSON.parse(data ?? 'null') as Told);
      const seenOf = (stream: string, count: number) =>
        told.slice(0, count).filter((event) => event.stream === stream).length;
      for (const count of [12, 7, 1]) {
        const lastEventId = ids[count - 1] as string;
        expect(lastEventId.length <= ID_LENGTH_MAX, `the id has ${lastEventId.length} characters`);
        expect(/^[A-Za-z0-9._-]+$/.test(lastEventId), `browsers do not send the id ${lastEventId}`);
        const rest = await target.subscribeToMany({ query, lastEventId });
        await rest.untilEvents(12 - count + 2);
        rest.close();
        for (const stream of streams) {
          const missing = range(seenOf(stream, count) + 1, 4);
          expectEqual(seqsOf(rest, stream), missing, `${stream} after ${count} events`);
        }
        expectEqual(seqsOf(rest, late), [1, 2], 'the stream that was made meanwhile');
      }
    },
  },
  {
    section: '4.11',
    what: 'where nothing begins so the answer waits, and streams are told of that end, under ids',
    async run(target) {
      const { prefix } = await filled(target, [], 0);
      const waiting = await target.subscribeToMany({ query: `prefix=${prefix}` });
      const [a, b] = [await made(target, `${prefix}a`), await made(target, `${prefix}b`)];
      await target.publish(a, 'one');
      await waiting.untilEvents(1);
      await target.exchange({ method: 'POST', path: `/v1/streams/${a}/close` });
      await waiting.untilEvents(2);
      await target.publish(b, 'one');
      await waiting.untilEvents(3);
      await target.exchange({ method: 'DELETE', path: `/v1/streams/${b}` });
      await waiting.untilEvents(4);
      expectEqual(
        waiting.events.map(({ event = 'message', data }) => [
          event,
          (JSON.parse(data ?? 'null') as Told).stream,
        ]),
        [
          ['message', a],
          ['stream_closed', a],
          ['message', b],
          ['stream_deleted', b],
        ],
        'what is told',
      );
      expectEqual(new Set(waiting.events.map(({ id }) => id)).size, 4, 'the number of different ids');
      waiting.close();
    },
  },
  {
    section: '4.11',
    what: 'a subscriber that comes back takes over from its old connection, and an id that is not known is refused',
    async run(target) {
      const { prefix, streams } = await filled(target, ['a'], 2);
      const query = `prefix=${prefix}`;
      const first = await target.subscribeToMany({ query: `${query}&cursor=earliest` });
      await first.untilEvents(2);
      const second = await target.subscribeToMany({ query, lastEventId: first.events[0]?.id });
      expectEqual(await first.untilEnded(), 'end', 'how the old connection ends');
      await second.untilEvents(1);
      expectEqual(seqsOf(second, streams[0] as string), [2], 'what follows');
      second.close();
      for (const lastEventId of [`p${'0'.repeat(20)}.1`, `${first.lastId}000`]) {
        const refused = await target.askMany({ query, lastEventId });
        const problem = expectProblem(await refused.refusal(), 410, 'resume_unavailable', lastEventId);
        expectEqual(problem.reason, 'cursor_unknown', `the reason of ${lastEventId}`);
      }
      const malformed = await target.askMany({ query, lastEventId: `${first.lastId}x` });
      expectProblem(await malformed.refusal(), 400, 'malformed', 'what is no id');
    },
  },
];
