import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EventSource } from 'eventsource';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { pack } from 'msgpackr';
import { GaplessClient } from '#gapless/client/client.js';
import { useBroker } from '../support/broker-process.js';
import { withDeadline } from '../support/deadline.js';
import { freshStream, MEDIA_TYPES, publish } from '../support/gapless-client.js';
import { testEvents } from './arbitrary.js';
import type { TestEvent } from './frame-run.js';

interface Read {
  readonly id: string;
  readonly type: string;
  readonly data: string;
}

const RUNS = 60;

/** What a reader that knows nothing of us is to see of an event: LF for each break, and bytes as base64. */
function shown({ type, data }: TestEvent): Omit<Read, 'id'> {
  const text =
    typeof data === 'string' ? data.replaceAll(/\r\n?/g, '\n') : Buffer.from(data).toString('base64');
  return { type: type === null || type === '' ? 'message' : type, data: text };
}

describe('what we write is read by everybody', () => {
  const broker = useBroker();
  const urlOf = (stream: string): string =>
    `http://127.0.0.1:${broker.port}/v1/streams/${stream}?cursor=earliest`;

  /** By the parser that AI and MCP clients are built on, with the text cut into pieces of every size. */
  async function byParser(stream: string, count: number, piece: number): Promise<Read[]> {
    const leaving = new AbortController();
    const read: Read[] = [];
    const parser = createParser({
      onEvent: ({ id = '', event = 'message', data }) => read.push({ id, type: event, data }),
      // It says of a field that it does not know that it passes over it, as the standard has it.
      onError: (error) => assert.equal(error.field, 'encoding'),
    });
    const { body } = await fetch(urlOf(stream), {
      headers: { Accept: 'text/event-stream' },
      signal: leaving.signal,
    });
    const decoder = new TextDecoder();
    for await (const chunk of body as ReadableStream<Uint8Array>) {
      const text = decoder.decode(chunk, { stream: true });
      for (let at = 0; at < text.length; at += piece) parser.feed(text.slice(at, at + piece));
      if (read.length >= count) break;
    }
    leaving.abort();
    return read;
  }

  async function byEventSource(stream: string, events: readonly TestEvent[]): Promise<Read[]> {
    const source = new EventSource(urlOf(stream));
    const read: Read[] = [];
    await new Promise<void>((resolve, reject) => {
      for (const type of new Set(events.map((event) => shown(event).type))) {
        source.addEventListener(type, ({ lastEventId, data }) => {
          if (read.push({ id: lastEventId, type, data }) === events.length) resolve();
        });
      }
      source.addEventListener('error', (error) => reject(new Error(error.message ?? 'it failed')));
    });
    source.close();
    return read;
  }

  async function byClient(stream: string, count: number): Promise<Read[]> {
    const read: Read[] = [];
    const client = new GaplessClient({ url: `http://127.0.0.1:${broker.port}` });
    const decode = ({ data }: { data: string | Uint8Array }): string =>
      typeof data === 'string' ? data : Buffer.from(data).toString('base64');
    for await (const event of client.subscribe(stream, { cursor: 'earliest', decode })) {
      if (read.push(event) === count) break;
    }
    return read;
  }

  it('4.3 any event comes out of eventsource-parser, eventsource and our client as it was published', async () => {
    const inputs = fc.tuple(
      testEvents.filter(({ length }) => length > 0),
      fc.integer({ min: 1, max: 40 }),
    );
    await fc.assert(
      fc.asyncProperty(inputs, async ([events, piece]) => {
        const stream = freshStream('read-by-all');
        const batch = events.map(({ type, data }) => {
          const bytes = typeof data === 'string' ? data : Buffer.from(data);
          return type === null ? { data: bytes } : { type, data: bytes };
        });
        const { epoch } = await publish(broker.port, stream, pack(batch), MEDIA_TYPES.msgpack);
        const expected = events.map((event, index) => ({ id: `${epoch}.${index + 1}`, ...shown(event) }));
        const readers = {
          'eventsource-parser': byParser(stream, events.length, piece),
          eventsource: byEventSource(stream, events),
          'our client': byClient(stream, events.length),
        };
        for (const [name, reading] of Object.entries(readers)) {
          assert.deepEqual(await withDeadline(name, reading), expected, name);
        }
      }),
      { numRuns: RUNS },
    );
  });
});
