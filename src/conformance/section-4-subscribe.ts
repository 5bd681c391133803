import { type Check, range, type Section } from './check.js';
import { expect, expectEqual, expectProblem, expectStatus } from './expect.js';
import { filledStream } from './filled-stream.js';
import { namedChecks } from './section-4-named.js';
import { prefixChecks } from './section-4-prefix.js';
import { promiseChecks } from './section-4-promise.js';
import { refusalChecks } from './section-4-refusals.js';
import { severalChecks } from './section-4-several.js';
import { positionsOf, type Target } from './target.js';

/** The contract has a comment every 15 s at least; the rest is for the way. */
const HEARTBEAT_MS_MAX = 18_000;
const TYPES_MAX = 64;

const cursors: Check[] = [
  {
    section: '4.1',
    what: 'the cursor is Last-Event-ID or `?cursor=`, and where both differ the header wins',
    async run(target) {
      const { name, epoch } = await filledStream(target, 5);
      const cases: [where: Parameters<Target['subscribe']>[1], first: number][] = [
        [{ lastEventId: `${epoch}.2` }, 3],
        [{ query: `cursor=${epoch}.3` }, 4],
        [{ lastEventId: `${epoch}.4`, query: `cursor=${epoch}.1` }, 5],
        [{ lastEventId: `${epoch}.0` }, 1],
        [{ lastEventId: 'earliest' }, 1],
        [{ query: 'cursor=earliest' }, 1],
      ];
      for (const [where, first] of cases) {
        const subscription = await target.subscribe(name, where);
        await subscription.untilEvents(6 - first);
        subscription.close();
        expectEqual(subscription.seqs, range(first, 5), `the seqs with ${JSON.stringify(where)}`);
      }
    },
  },
  {
    section: '4.1',
    what: '`latest`, no cursor and an empty header mean live from now',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      const wheres = [{}, { lastEventId: '' }, { lastEventId: 'latest' }, { query: 'cursor=latest' }];
      const live = await Promise.all(wheres.map((where) => target.subscribe(name, where)));
      for (const subscription of live) {
        await subscription.untilPrimed();
        expectEqual(subscription.lastId, `${epoch}.3`, 'the primed position');
      }
      await target.publish(name, 'new');
      for (const subscription of live) {
        await subscription.untilEvents(1);
        subscription.close();
        expectEqual(subscription.seqs, [4], 'the seqs of one that is live from 3');
      }
    },
  },
  {
    section: '4.1',
    what: 'an empty `?cursor=` is malformed',
    async run(target) {
      const { name } = await filledStream(target, 1);
      const subscription = await target.ask(name, { query: 'cursor=' });
      expectProblem(await subscription.refusal(), 400, 'malformed', '?cursor=');
    },
  },
];

const opening: Check[] = [
  {
    section: '4.2',
    what: 'the answer is 200 at once, is not cached or held back, and names epoch, floor and head',
    async run(target) {
      const { name, epoch } = await filledStream(target, 2);
      const subscription = await target.subscribe(name);
      subscription.close();
      const type = subscription.header('content-type') ?? 'none';
      expect(/^text\/event-stream\s*(;|$)/.test(type), `Content-Type is ${type}`);
      expectEqual(subscription.header('cache-control'), 'no-store, no-transform', 'Cache-Control');
      expectEqual(subscription.header('x-accel-buffering'), 'no', 'X-Accel-Buffering');
      const positions = positionsOf((header) => subscription.header(header), 'a subscription');
      expectEqual(positions, { epoch, floor: 1, head: 2 }, 'the positions of a subscription');
    },
  },
  {
    section: '4.2',
    what: 'a `retry:` comes first, then the position as an id without data, before any event',
    async run(target) {
      const { name, epoch } = await filledStream(target, 2);
      const subscription = await target.subscribe(name, { lastEventId: `${epoch}.1` });
      await subscription.untilEvents(1);
      subscription.close();
      const [retry, priming, event] = subscription.frames.filter(({ comment }) => comment === undefined);
      expect(Number(retry?.retry) > 0 && retry?.data === undefined, `first comes ${JSON.stringify(retry)}`);
      expectEqual(priming, { id: `${epoch}.1` }, 'the priming frame');
      expectEqual(event, { id: `${epoch}.2`, data: 'event 2' }, 'the first event');
    },
  },
];

const frames: Check[] = [
  {
    section: '4.3',
    what: 'a frame has an id, a type where there is one, a line for each line of the data, and a colon on every line',
    async run(target) {
      const { name, epoch } = await target.createStream();
      await target.publish(name, 'one\ntwo\n\nthree');
      await target.publish(name, 'x', undefined, { 'Gapless-Event': 'tick' });
      await target.publish(name, '');
      const subscription = await target.subscribe(name, { query: 'cursor=earliest' });
      await subscription.untilEvents(3);
      subscription.close();
      const expected = [
        { id: `${epoch}.1`, data: 'one\ntwo\n\nthree' },
        { id: `${epoch}.2`, event: 'tick', data: 'x' },
        { id: `${epoch}.3`, data: '' },
      ];
      expectEqual(subscription.events, expected, 'three frames');
      expectEqual(subscription.linesWithoutColon, [], 'lines without a colon');
    },
  },
  {
    section: '4.3',
    what: 'seqs are consecutive from the stored into the live, through a thousand events',
    async run(target) {
      const { name, epoch } = await filledStream(target, 500);
      const subscription = await target.subscribe(name, { lastEventId: `${epoch}.7` });
      for (const seq of range(501, 510)) await target.publish(name, `event ${seq}`);
      await target.publishLines(
        name,
        range(511, 1000).map((seq) => `event ${seq}`),
      );
      await subscription.untilEvents(993);
      subscription.close();
      expectEqual(subscription.seqs, range(8, 1000), 'the seqs');
      const data = subscription.events.map((event) => event.data);
      expectEqual(
        data,
        range(8, 1000).map((seq) => `event ${seq}`),
        'the data',
      );
    },
  },
  {
    section: '4.3',
    what: 'an idle subscription gets a comment every 15 s at least',
    async run(target) {
      const { name } = await filledStream(target, 1);
      const subscription = await target.subscribe(name);
      const isComment = () => subscription.frames.some(({ comment }) => comment !== undefined);
      await subscription.until('a comment', isComment, HEARTBEAT_MS_MAX);
      subscription.close();
    },
  },
];

const ends: Check[] = [
  {
    section: '4.7',
    what: 'a closed stream ends with `stream_closed` after its last event, without an id, and with a proper end',
    async run(target) {
      const { name, epoch } = await filledStream(target, 2);
      const live = await target.subscribe(name);
      await live.untilPrimed();
      await target.exchange({ method: 'POST', path: `/v1/streams/${name}/close` });
      const later = await target.subscribe(name, { query: 'cursor=earliest' });
      for (const [subscription, events] of [
        [live, 0],
        [later, 2],
      ] as const) {
        expectEqual(await subscription.untilEnded(), 'end', 'how it ends');
        const { event, id, data } = subscription.events.at(-1) ?? {};
        expectEqual(
          [subscription.events.length, event, id],
          [events + 1, 'stream_closed', undefined],
          'the last event',
        );
        expectEqual(JSON.parse(data ?? 'null'), { cursor: `${epoch}.2` }, 'the data of stream_closed');
      }
    },
  },
  {
    section: '4.7',
    what: 'at the end of a closed stream the answer is 204, with its cursor, `latest` or none',
    async run(target) {
      const { name, epoch } = await filledStream(target, 2);
      await target.exchange({ method: 'POST', path: `/v1/streams/${name}/close` });
      for (const where of [{ lastEventId: `${epoch}.2` }, { lastEventId: 'latest' }, {}]) {
        const subscription = await target.ask(name, where);
        expectEqual(subscription.status, 204, `the answer to ${JSON.stringify(where)}`);
        await subscription.refusal();
      }
    },
  },
  {
    section: '4.7',
    what: 'subscribers of a deleted stream get `stream_deleted` with the last event that they were written, and the end',
    async run(target) {
      const { name, epoch } = await filledStream(target, 2);
      const subscription = await target.subscribe(name, { query: 'cursor=earliest' });
      await subscription.untilEvents(2);
      await target.exchange({ method: 'DELETE', path: `/v1/streams/${name}` });
      expectEqual(await subscription.untilEnded(), 'end', 'how it ends');
      const { event, id, data } = subscription.events.at(-1) ?? {};
      expectEqual([event, id], ['stream_deleted', undefined], 'the last event');
      expectEqual(JSON.parse(data ?? 'null'), { cursor: `${epoch}.2` }, 'the data of stream_deleted');
    },
  },
];

const filters: Check[] = [
  {
    section: '4.9',
    what: '`?types=` takes those types only, `message` stands for the untyped, and ids stay those of the stream',
    async run(target) {
      const { name } = await target.createStream();
      const batch = ['a', 'b', '', 'a', 'c'].map((type) =>
        type === '' ? { data: 'x' } : { type, data: 'x' },
      );
      await target.publish(name, JSON.stringify(batch), 'application/vnd.gapless.batch+json');
      for (const [types, seqs] of [
        ['a', [1, 4]],
        ['message,c', [3, 5]],
      ] as const) {
        const subscription = await target.subscribe(name, { query: `cursor=earliest&types=${types}` });
        await subscription.untilEvents(2);
        subscription.close();
        expectEqual(subscription.seqs, seqs, `the seqs with ?types=${types}`);
      }
    },
  },
  {
    section: '4.9',
    what: 'the cursor advances over what is left out, by ids without data',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      const subscription = await target.subscribe(name, { query: 'cursor=earliest&types=nothing' });
      await subscription.until(
        'the id of the head',
        () => subscription.lastId === `${epoch}.3`,
        HEARTBEAT_MS_MAX,
      );
      subscription.close();
      expectEqual(subscription.events, [], 'events of a type that nobody published');
    },
  },
  {
    section: '4.9',
    what: 'more than 64 types are 400 invalid_query',
    async run(target) {
      const { name } = await filledStream(target, 1);
      const query = (count: number) => `types=${range(1, count).join(',')}`;
      const most = await target.subscribe(name, { query: query(TYPES_MAX) });
      most.close();
      const more = await target.ask(name, { query: query(TYPES_MAX + 1) });
      expectProblem(await more.refusal(), 400, 'invalid_query', '65 types');
      const none = await target.ask(name, { query: 'types=' });
      expectStatus(await none.refusal(), 400, 'an empty ?types=');
    },
  },
];

export const subscribe: Section = {
  number: '4',
  title: 'Subscribe: Server-Sent Events',
  checks: [
    ...cursors,
    ...opening,
    ...frames,
    ...refusalChecks,
    ...ends,
    ...namedChecks,
    ...filters,
    ...severalChecks,
    ...prefixChecks,
    ...promiseChecks,
  ],
};
