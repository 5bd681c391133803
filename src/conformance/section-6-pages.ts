import { unpack } from 'msgpackr';
import type { Answer } from './answer.js';
import { type Check, range, type Section } from './check.js';
import { expect, expectEqual, expectProblem, expectStatus } from './expect.js';
import { evictedStream, filledStream } from './filled-stream.js';
import { MEDIA, positionsOf, type Target } from './target.js';

interface Page {
  events: { id: string; type: string; data: string; encoding?: string }[];
  next: string;
  upToDate: boolean;
  closed: boolean;
}

const BATCH = '[{"data":"one"},{"type":"tick","data":"two\\nlines"},{"data":"three"}]';

async function readPage(target: Target, stream: string, query = ''): Promise<Page> {
  const answer = await target.page(stream, query);
  expectStatus(answer, 200, `a page with ?${query}`);
  const page = answer.json() as Page;
  expectHeaders(answer, page);
  return page;
}

/** The headers that a page has in all formats. */
function expectHeaders(answer: Answer, { next, upToDate, closed }: Omit<Page, 'events'>): void {
  positionsOf((name) => answer.header(name), 'a page');
  const headers = ['gapless-next', 'gapless-up-to-date', 'gapless-closed'].map((name) => answer.header(name));
  expectEqual(headers, [next, String(upToDate), String(closed)], 'Gapless-Next, -Up-To-Date and -Closed');
}

const reading: Check[] = [
  {
    section: '6',
    what: 'pages of any size lead through all events, each once, and the last is up to date',
    async run(target) {
      const { name, epoch } = await filledStream(target, 10);
      for (const limit of [1, 3, 10]) {
        const ids: string[] = [];
        let page = await readPage(target, name, `limit=${limit}`);
        for (;;) {
          expect(page.events.length <= limit, `${page.events.length} events with limit=${limit}`);
          ids.push(...page.events.map(({ id }) => id));
          expectEqual(page.next, ids.at(-1), '`next`');
          if (page.upToDate) break;
          expect(ids.length < 10, 'not up to date with the last event');
          page = await readPage(target, name, `limit=${limit}&cursor=${page.next}`);
        }
        expectEqual(
          ids,
          range(1, 10).map((seq) => `${epoch}.${seq}`),
          `all ids with limit=${limit}`,
        );
      }
    },
  },
  {
    section: '6',
    what: 'the cursor is exclusive, at the head the page is empty, and Last-Event-ID is not looked at',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      const after = await readPage(target, name, `cursor=${epoch}.1`);
      expectEqual(
        after.events.map(({ data }) => data),
        ['event 2', 'event 3'],
        'the events after 1',
      );
      for (const cursor of [`${epoch}.3`, 'latest']) {
        const { events, next, upToDate } = await readPage(target, name, `cursor=${cursor}`);
        expectEqual([events, next, upToDate], [[], `${epoch}.3`, true], `the page at ${cursor}`);
      }
      const headers = { Accept: MEDIA.json, 'Last-Event-ID': `${epoch}.2` };
      const page = (await target.get(`/v1/streams/${name}`, headers)).json() as Page;
      expectEqual(page.events.length, 3, 'events of a page with Last-Event-ID');
    },
  },
  {
    section: '6',
    what: 'JSON, NDJSON and MessagePack say the same',
    async run(target) {
      const { name, epoch } = await target.createStream();
      await target.publish(name, BATCH, MEDIA.batch);
      await target.publish(name, Uint8Array.of(1, 2), MEDIA.binary);
      const [, second, , binary] = (await readPage(target, name)).events;
      expectEqual(second, { id: `${epoch}.2`, type: 'tick', data: 'two\nlines' }, 'a typed event in JSON');
      expectEqual(
        binary,
        { id: `${epoch}.4`, type: 'message', data: 'AQI=', encoding: 'base64' },
        'a binary one',
      );
      const rest = { next: `${epoch}.4`, upToDate: true, closed: false };

      const ndjson = await target.page(name, '', MEDIA.ndjson);
      expectHeaders(ndjson, rest);
      const lines = ndjson.text.split('\n').filter((line) => line !== '');
      expectEqual(JSON.parse(lines[1] ?? 'null'), second, 'a typed event in NDJSON');
      expectEqual(
        [lines.length, JSON.parse(lines[3] ?? 'null')],
        [4, binary],
        'lines, and a binary event in NDJSON',
      );

      const answer = await target.page(name, '', MEDIA.msgpack);
      expectHeaders(answer, rest);
      expect(answer.header('content-type')?.startsWith(MEDIA.msgpack), 'not of the type that was asked for');
      const packed = unpack(answer.body) as Page;
      expectEqual(
        [packed.next, packed.upToDate, packed.closed],
        Object.values(rest),
        'the rest in MessagePack',
      );
      expectEqual(packed.events[1], second, 'a typed event in MessagePack');
      const bytes = packed.events[3]?.data as unknown;
      expect(
        bytes instanceof Uint8Array && Buffer.from(bytes).equals(Buffer.of(1, 2)),
        'a binary event is not bytes',
      );
    },
  },
  {
    section: '6',
    what: 'no Accept and one without a preference are JSON; none of the four types is 406 not_acceptable',
    async run(target) {
      const { name } = await filledStream(target, 1);
      const path = `/v1/streams/${name}`;
      for (const headers of [{}, { Accept: '*/*' }, { Accept: 'image/png, application/json;q=0.5' }]) {
        const answer = await target.get(path, headers as Record<string, string>);
        expectStatus(answer, 200, JSON.stringify(headers));
        expect(
          answer.header('content-type')?.startsWith(MEDIA.json),
          `${JSON.stringify(headers)} is not JSON`,
        );
      }
      expectProblem(
        await target.get(path, { Accept: 'image/png' }),
        406,
        'not_acceptable',
        'Accept: image/png',
      );
    },
  },
  {
    section: '6',
    what: 'a closed stream says so, and with upToDate that this was the end',
    async run(target) {
      const { name } = await filledStream(target, 2);
      await target.exchange({ method: 'POST', path: `/v1/streams/${name}/close` });
      const first = await readPage(target, name, 'limit=1');
      expectEqual([first.upToDate, first.closed], [false, true], 'upToDate and closed before the end');
      const last = await readPage(target, name, `cursor=${first.next}&wait=10`);
      expectEqual([last.events.length, last.upToDate, last.closed], [1, true, true], 'the last page');
      const end = await readPage(target, name, `cursor=${last.next}&wait=20`);
      expectEqual([end.events, end.closed], [[], true], 'the page after it, which does not wait');
    },
  },
];

const waiting: Check[] = [
  {
    section: '6',
    what: 'with `wait` a page at the head comes with the next event, or empty when the time is over',
    async run(target) {
      const { name, epoch } = await filledStream(target, 1);
      const waiter = readPage(target, name, `cursor=${epoch}.1&wait=20`);
      await target.publish(name, 'new');
      const { events } = await waiter;
      expectEqual(
        events.map(({ id, data }) => [id, data]),
        [[`${epoch}.2`, 'new']],
        'the page that waited',
      );
      const { events: none, next } = await readPage(target, name, `cursor=${epoch}.2&wait=1`);
      expectEqual([none, next], [[], `${epoch}.2`], 'the page after a second of nothing');
    },
  },
  {
    section: '6',
    what: 'a page of what is gone is refused as a subscription is',
    async run(target) {
      const { name, epoch } = await evictedStream(target);
      const absent = target.freshName();
      for (const [stream, cursor, reason] of [
        [name, `${epoch}.0`, 'evicted'],
        [name, `${epoch}.999999`, 'ahead_of_head'],
        [name, 'abcdefghij.1', 'epoch_changed'],
        [absent, 'abcdefghij.1', 'epoch_changed'],
      ] as const) {
        const answer = await target.page(stream, `cursor=${cursor}`);
        const problem = expectProblem(answer, 410, 'resume_unavailable', `a page after ${cursor}`);
        expectEqual([problem.reason, problem.cursor], [reason, cursor], 'reason and cursor');
      }
      expectProblem(await target.page(name, 'cursor=x'), 400, 'malformed', 'a malformed cursor');
      const { events } = await readPage(target, name, 'limit=1');
      const { floor } = await target.positions(name);
      expectEqual(events[0]?.id, `${epoch}.${floor}`, 'the first event without a cursor');
    },
  },
  {
    section: '6',
    what: 'a `limit` or `wait` that cannot be is 400 invalid_query',
    async run(target) {
      const { name } = await filledStream(target, 1);
      for (const query of ['limit=0', 'limit=-1', 'limit=x', 'limit=', 'wait=-1', 'wait=1.5', 'wait=soon'])
        expectProblem(await target.page(name, query), 400, 'invalid_query', `?${query}`);
    },
  },
];

export const pages: Section = { number: '6', title: 'Read a page', checks: [...reading, ...waiting] };
