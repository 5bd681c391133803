import { type Check, range, type Section } from './check.js';
import { expect, expectCursor, expectEqual, expectProblem, expectStatus } from './expect.js';
import { evictedStream, filledStream } from './filled-stream.js';
import { WebSocketStream } from './websocket-stream.js';

/** An event so large that its message has a length of 64 bits. */
const LARGE_BYTES = 70_000;

const checks: Check[] = [
  {
    section: '5.1',
    what: 'a subprotocol that nobody knows, and another version, are 400 invalid_handshake',
    async run({ endpoint, prefix }) {
      const name = `${prefix}handshake`;
      const unknown = await WebSocketStream.ask(endpoint, name, { protocol: 'gapless.json.v9' });
      const problem = expectProblem(
        await unknown.refusal(),
        400,
        'invalid_handshake',
        'an unknown subprotocol',
      );
      expect(Array.isArray(problem.supported), 'the problem does not name those that are known');
      const headers = { 'Sec-WebSocket-Version': '8' };
      const old = await WebSocketStream.ask(endpoint, name, { headers });
      expectProblem(await old.refusal(), 400, 'invalid_handshake', 'version 8');
    },
  },
  {
    section: '5.2',
    what: 'it opens with its position, and gives events without gap and duplicate, also when it comes back with a cursor',
    async run(target) {
      const { name, epoch } = await filledStream(target, 4);
      const first = await WebSocketStream.open(target.endpoint, name, { query: `cursor=${epoch}.1` });
      const { cursor, head } = first.messages[0] as { cursor?: unknown; head?: unknown };
      expectEqual([cursor, head], [`${epoch}.1`, 4], 'cursor and head of `open`');
      await target.publish(name, 'x'.repeat(LARGE_BYTES));
      await first.until('five events', () => first.events.length >= 4);
      first.close();
      const seen = first.events.map(({ id }) => expectCursor(id, 'the id of an event').seq);
      expectEqual(seen, range(2, 5), 'the seqs');
      expectEqual(first.events.at(-1)?.data.length, LARGE_BYTES, 'the length of a large event');
      await target.publish(name, 'six');
      const second = await WebSocketStream.open(target.endpoint, name, {
        query: `cursor=${first.events.at(-1)?.id}`,
      });
      await second.until('the next event', () => second.events.length > 0);
      second.close();
      expectEqual(
        second.events.map(({ id }) => id),
        [`${epoch}.6`],
        'what comes after the cursor',
      );
    },
  },
  {
    section: '5.3',
    what: 'a resume that is impossible is an error message and a close code, and no event',
    async run(target) {
      const { name, epoch } = await evictedStream(target);
      for (const [cursor, closeCode, reason] of [
        [`${epoch}.1`, 4410, 'evicted'],
        ['zzzzzzzzzz.1', 4410, 'epoch_changed'],
        [`${epoch}.999999`, 4410, 'ahead_of_head'],
        ['nonsense', 4400, 'malformed'],
      ] as const) {
        const socket = await WebSocketStream.ask(target.endpoint, name, { query: `cursor=${cursor}` });
        expectEqual(await socket.untilClosed(), closeCode, `the close code for ${reason}`);
        const [said, ...more] = socket.messages;
        expectEqual([said?.kind, said?.reason, more.length], ['error', reason, 0], 'what is said before');
      }
    },
  },
  {
    section: '5.3',
    what: 'the end of a stream is a message with its last event, and close code 1000',
    async run(target) {
      const { name, epoch } = await filledStream(target, 2);
      const socket = await WebSocketStream.open(target.endpoint, name, { query: 'cursor=earliest' });
      await socket.until('two events', () => socket.events.length === 2);
      expectStatus(
        await target.exchange({ method: 'POST', path: `/v1/streams/${name}/close` }),
        200,
        'closing',
      );
      expectEqual(await socket.untilClosed(), 1000, 'the close code');
      expectEqual(socket.messages.at(-1), { kind: 'closed', cursor: `${epoch}.2` }, 'the last message');
    },
  },
  {
    section: '5.4',
    what: 'the server pings with the cursor, and for a named subscriber the pong acknowledges it',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      const socket = await WebSocketStream.open(target.endpoint, name, {
        query: 'cursor=earliest&subscriber=a',
      });
      await socket.until('a ping with the newest event', () => socket.pings.includes(`${epoch}.3`));
      await target.eventually('the acknowledgement by a pong', async () => {
        const state = (await target.get(`/v1/streams/${name}/state`)).json() as {
          named: { acked: string }[];
        };
        return state.named[0]?.acked === `${epoch}.3`;
      });
      socket.close();
    },
  },
  {
    section: '5.5',
    what: 'a publish is appended as a whole and answered with where it stands, a repeat as the first time, and what is wrong with an error',
    async run(target) {
      const { name, epoch } = await target.createStream();
      const socket = await WebSocketStream.open(target.endpoint, name);
      const publish = (members: object) => socket.say({ kind: 'publish', ...members });
      const events = [{ data: 'one' }, { type: 'tick', data: { n: 2 } }];
      const { ref: _first, ...where } = await publish({ events, idempotencyKey: 'k' });
      expectEqual(where, { kind: 'published', cursor: `${epoch}.2`, epoch, first: 1, last: 2 }, 'the answer');
      const { ref: _second, ...again } = await publish({ events, idempotencyKey: 'k' });
      expectEqual(again, { ...where, duplicate: true }, 'the answer to a repeat');
      for (const [members, code] of [
        [{ events: [] }, 'empty_batch'],
        [{}, 'invalid_body'],
        [{ events, ifHead: `${epoch}.1` }, 'head_mismatch'],
        [{ events, producerId: 'a', producerEpoch: 0, producerSeq: 1 }, 'producer_gap'],
      ] as const) {
        expectEqual(
          (await publish(members)).code,
          code,
          `the code for ${JSON.stringify(members).slice(0, 60)}`,
        );
      }
      await socket.until('both events', () => socket.events.length >= 2);
      expectEqual(
        socket.events.map(({ type, data }) => [type, data]),
        [
          ['message', 'one'],
          ['tick', '{"n":2}'],
        ],
        'the events',
      );
      socket.close();
    },
  },
  {
    section: '5.5',
    what: 'an ack moves a named subscriber, and without a name it is subscriber_not_found',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      const named = await WebSocketStream.open(target.endpoint, name, {
        query: 'cursor=earliest&subscriber=a',
      });
      const acked = await named.say({ kind: 'ack', cursor: `${epoch}.2` });
      expect(
        acked.kind === 'acked' && [2, 3].includes(expectCursor(acked.cursor, 'acked').seq),
        'it is not acked',
      );
      expectEqual(
        (await named.say({ kind: 'ack', cursor: `${epoch}.9` })).code,
        'ack_ahead',
        'beyond the newest',
      );
      named.close();
      const nameless = await WebSocketStream.open(target.endpoint, name);
      const refused = await nameless.say({ kind: 'ack', cursor: `${epoch}.1` });
      expectEqual(refused.code, 'subscriber_not_found', 'without a name');
      nameless.close();
    },
  },
];

export const webSockets: Section = { number: '5', title: 'Subscribe: WebSocket', checks };
