import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { useDurableBroker } from '../support/durable-broker.js';
import { MEDIA_TYPES, type Page, type PageEvent, readPage, stateOf } from '../support/gapless-client.js';
import type { HttpResponse } from '../support/http.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { FilledStream, TYPES, typeOf } from './filled-stream.js';

const EVENTS = 20_000;
const EVENT_BYTES = 60;
const SEAM_EVENTS = 12;
const HEARTBEAT_INTERVAL_MS = 100;

for (const threads of [1, 3]) {
  describe(`pages and filters across log and ring, with --threads ${threads}`, () => {
    const broker = useDurableBroker(
      ...['--threads', String(threads), '--ring-bytes', '64KiB'],
      ...['--heartbeat-interval-ms', String(HEARTBEAT_INTERVAL_MS)],
    );

    async function filled(): Promise<{ stream: FilledStream; floor: number }> {
      const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
      await stream.fill(EVENTS);
      const { floor, head } = await stateOf(broker.port, stream.name);
      assert.ok(floor > head / 2, `the ring holds ${floor}..${head}: there is no seam to test`);
      return { stream, floor };
    }

    async function page(stream: FilledStream, query: string, accept?: string): Promise<HttpResponse> {
      const response = await readPage(broker.port, stream.name, query, accept);
      assert.equal(response.status, 200, response.text);
      // What may be seen is committed (I4): no page goes beyond what its own headers say.
      const next = seqOf(response.header('gapless-next') ?? '');
      const head = Number(response.header('gapless-head'));
      assert.ok(next <= head, `a page up to ${next} says that the head is ${head}`);
      assert.equal(response.header('gapless-up-to-date'), String(next === head));
      return response;
    }

    it('6 pages from the earliest on are contiguous to the end, whatever their size (I1, I2)', async () => {
      const { stream } = await filled();
      for (const limit of [97, 1000]) {
        const events: PageEvent[] = [];
        for (let query = `limit=${limit}`; ; ) {
          const { events: more, next, upToDate } = (await page(stream, query)).json<Page>();
          assert.ok(more.length > 0 && more.length <= limit);
          events.push(...more);
          assert.equal(next, more.at(-1)?.id);
          if (upToDate) break;
          query = `limit=${limit}&cursor=${next}`;
        }
        stream.assertEvents(events, { first: 1, last: EVENTS });
      }
    });

    it('6 a page at every cursor around the seam begins with the next event, as JSON and as NDJSON (I2)', async () => {
      const { stream, floor } = await filled();
      for (const seq of range(floor - 1 - SEAM_EVENTS, floor - 1 + SEAM_EVENTS)) {
        const query = `cursor=${cursorOf(stream.epoch, seq)}&limit=40`;
        const { events } = (await page(stream, query)).json<Page>();
        assert.ok(events.length > 0);
        stream.assertEvents(events, { first: seq + 1, last: seq + events.length });
        const lines = (await page(stream, query, MEDIA_TYPES.ndjson)).text.trimEnd().split('\n');
        assert.deepEqual(
          lines.map((line) => JSON.parse(line) as PageEvent),
          events,
        );
      }
    });

    it('6 a long poll below the ring answers at once, and one at the head with the next event (I1)', async () => {
      const { stream, floor } = await filled();
      const below = await page(stream, `cursor=${cursorOf(stream.epoch, floor - 2)}&wait=60`);
      assert.equal(below.json<Page>().events[0]?.id, cursorOf(stream.epoch, floor - 1));
      let cursor = cursorOf(stream.epoch, stream.head);
      for (const _poll of range(1, 10)) {
        const polled = page(stream, `cursor=${cursor}&wait=60`);
        await stream.fill(3);
        const { events, next } = (await polled).json<Page>();
        stream.assertEvents(events, { first: seqOf(cursor) + 1, last: seqOf(next) });
        assert.ok(events.length > 0);
        cursor = next;
      }
    });

    it('6 readers who page along while a publisher goes on never see beyond what is committed (I1, I4)', async () => {
      const { stream } = await filled();
      let isOver = false;
      const reading = range(1, 6).map(async (reader) => {
        let cursor = cursorOf(stream.epoch, EVENTS - reader * 1000);
        while (!isOver || seqOf(cursor) < stream.head) {
          const { events, next } = (await page(stream, `cursor=${cursor}`)).json<Page>();
          stream.assertEvents(events, { first: seqOf(cursor) + 1, last: seqOf(next) });
          cursor = next;
        }
      });
      for (const _round of range(1, 60)) await stream.fill(50);
      isOver = true;
      await Promise.all(reading);
    });

    it('4.9 a filter gives the same events from the log and from the ring, and ids move on past the others (I2)', async () => {
      const { stream, floor } = await filled();
      const cursors = [0, ...range(floor - 1 - SEAM_EVENTS, floor - 1 + SEAM_EVENTS)];
      for (const [index, seq] of cursors.entries()) {
        const types = [TYPES[index % TYPES.length] as string];
        const subscription = await SseSubscription.open(broker.port, stream.name, {
          lastEventId: cursorOf(stream.epoch, seq),
          query: `types=${types.join(',')}`,
        });
        await subscription.untilSeq(stream.head);
        stream.assertEvents(subscription.events, { first: seq + 1, last: stream.head, types });
        subscription.cut();
      }
    });

    it('4.9 a filter that lets nothing of the log through still follows to the head, and is live there', async () => {
      const { stream } = await filled();
      const subscription = await SseSubscription.open(broker.port, stream.name, {
        cursor: 'earliest',
        query: 'types=a,unheard-of',
      });
      const never = await SseSubscription.open(broker.port, stream.name, {
        cursor: 'earliest',
        query: 'types=unheard-of',
      });
      await Promise.all([subscription.untilSeq(stream.head), never.untilSeq(stream.head)]);
      await stream.fill(9);
      await Promise.all([subscription.untilSeq(stream.head), never.untilSeq(stream.head)]);
      stream.assertEvents(subscription.events, { first: 1, last: stream.head, types: ['a'] });
      assert.equal(never.eventCount, 0);
      assert.ok(range(1, 9).some((seq) => typeOf(EVENTS + seq) === 'a'));
      assert.equal(total(await scrape(broker.port), METRIC.seamViolations), 0);
      subscription.cut();
      never.cut();
    });
  });
}
