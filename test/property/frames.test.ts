import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { IdLine } from '#gapless/core/sse-frame.js';
import { filterFrames, parseFrames } from '#gapless/core/sse-parse.js';
import { epochs, seqs, testEvents } from './arbitrary.js';
import { asRead, frameRun, type TestEvent } from './frame-run.js';
import { readEventStream } from './whatwg-event-stream.js';

const firstSeqs = seqs.map((seq) => Math.min(Math.max(seq, 1), Number.MAX_SAFE_INTEGER - 1000));

function shownType({ type }: TestEvent): string {
  return type === null || type === '' ? 'message' : type;
}

function shownData({ data }: TestEvent): string {
  return typeof data === 'string' ? asRead(data) : Buffer.from(data).toString('base64');
}

test('4.3 an EventSource reads back every event that was framed, in order, with its id (I1)', () => {
  fc.assert(
    fc.property(epochs, firstSeqs, testEvents, (epoch, firstSeq, events) => {
      const { events: dispatched } = readEventStream(frameRun(epoch, firstSeq, events));
      const expected = events.map((event, i) => ({
        type: shownType(event),
        data: shownData(event),
        lastEventId: `${epoch}.${firstSeq + i}`,
      }));
      assert.deepEqual(dispatched, expected);
    }),
    { numRuns: 2000 },
  );
});

test('4.3 every line of every frame has a colon, and only a frame ends with an empty line', () => {
  fc.assert(
    fc.property(epochs, testEvents, (epoch, events) => {
      const frames = Buffer.from(frameRun(epoch, 1, events))
        .toString()
        .split('\n\n');
      assert.equal(frames.pop(), '');
      assert.equal(frames.length, events.length);
      for (const line of frames.flatMap((frame) => frame.split('\n'))) assert.ok(line.includes(':'), line);
    }),
    { numRuns: 1000 },
  );
});

test('6 frames are parsed back into the events that were framed', () => {
  fc.assert(
    fc.property(epochs, firstSeqs, testEvents, (epoch, firstSeq, events) => {
      const parsed = parseFrames(frameRun(epoch, firstSeq, events)).map((event) => ({
        ...event,
        data: Buffer.from(event.data).toString(),
      }));
      const expected = events.map((event, i) => ({
        seq: firstSeq + i,
        type: shownType(event) === 'message' ? null : event.type,
        encoding: typeof event.data === 'string' ? null : 'base64',
        data: shownData(event),
      }));
      assert.deepEqual(parsed, expected);
    }),
    { numRuns: 2000 },
  );
});

test('4.9 to filter frames and to filter events comes to the same', () => {
  const filters = fc.uniqueArray(
    fc.constantFrom<string[]>('message', 'tick', 'tock', ' tick', 'größe', 'other'),
  );
  fc.assert(
    fc.property(epochs, firstSeqs, testEvents, filters, (epoch, firstSeq, events, names) => {
      const types = new Set(names);
      const frames = frameRun(epoch, firstSeq, events);
      const expected = parseFrames(frames).filter(({ type }) => types.has(type ?? 'message'));
      const filtered = filterFrames(frames, types).frames;
      assert.deepEqual(parseFrames(filtered), expected);
      assert.deepEqual(filterFrames(filtered, types).frames, filtered);
    }),
    { numRuns: 2000 },
  );
});

test('4.3 an id line that counts up says what a newly written one says', () => {
  const id = new IdLine();
  fc.assert(
    fc.property(epochs, firstSeqs, fc.integer({ min: 0, max: 120 }), (epoch, firstSeq, steps) => {
      id.start(epoch, firstSeq);
      for (let i = 0; i < steps; i++) id.next();
      const line = Buffer.from(id.bytes.subarray(0, id.length)).toString();
      assert.equal(line, `id: ${epoch}.${firstSeq + steps}\n`);
    }),
    { numRuns: 2000 },
  );
});
