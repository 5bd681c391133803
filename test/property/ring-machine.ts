import assert from 'node:assert/strict';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import {
  ANY_HEAD,
  APPEND_CLOSED,
  APPEND_GONE,
  APPEND_HEAD_MISMATCH,
  APPEND_NO_MEMORY,
  APPEND_TOO_LARGE,
  APPENDED,
  Appender,
} from '#gapless/ring/append.js';
import * as layout from '#gapless/ring/layout.js';
import {
  closeStream,
  readPositions,
  removeStream,
  trimBelow,
  trimToRetention,
} from '#gapless/ring/lifecycle.js';
import {
  FrameRun,
  READ_CAUGHT_UP,
  READ_GONE,
  READ_OK,
  READ_OVERTAKEN,
  RingReader,
} from '#gapless/ring/read.js';
import { f64At, i32At, type Rings, type StreamHandle } from '#gapless/ring/rings.js';
import { NOW_MS, openRingStream } from '../unit/ring-open.js';
import { type Limits, StreamModel, whileUnread } from './ring-model.js';

export interface StreamSetup {
  readonly limits: Limits;
  readonly dataBytesMax: number;
  /** Seq of the first event, and the byte position at which it stands: put there by hand. */
  readonly firstSeq: number;
  readonly firstPosition: number;
}

const FRAME_OVERHEAD_BYTES = 'data: \n\n'.length;

/** One stream in shared memory next to its model. After every step both must tell the same story. */
export class RingMachine {
  model: StreamModel;
  handle: StreamHandle;
  /** Handles of streams that lived in the slot before. */
  readonly stale: StreamHandle[] = [];

  readonly #rings: Rings;
  readonly #slot: number;
  readonly #setup: StreamSetup;
  readonly #appender: Appender;
  readonly #reader: RingReader;
  readonly #run = new FrameRun(16);
  readonly #batch = new FrameBatch(1 << 26);
  #opened = 0;
  #texts = 0;

  constructor(rings: Rings, readerRings: Rings, slot: number, setup: StreamSetup) {
    this.#rings = rings;
    this.#slot = slot;
    this.#setup = setup;
    this.#appender = new Appender(rings);
    this.#reader = new RingReader(readerRings);
    this.model = this.#newModel();
    this.handle = this.#open();
  }

  /** Frames texts of these sizes and appends them. `ifHead`: added to the head that it has, or null. */
  append(sizes: readonly number[], type: string | null, ifHead: number | null): void {
    const { model } = this;
    const texts = this.#makeTexts(sizes);
    const ifHeadSeq = ifHead === null ? ANY_HEAD : Math.max(0, model.head + ifHead);
    if (texts.length === 0) return;
    const grown = new StreamModel(model.epoch, model.head + 1);
    grown.append(texts, type);
    const bytes = grown.keptBytes;
    const refusalsBefore = this.#refusals();

    const outcome = this.#appender.append(this.handle, this.#batchOf(texts, type), NOW_MS, ifHeadSeq);
    const refused = this.#refusals() > refusalsBefore;
    if (model.closed) assert.equal(outcome, APPEND_CLOSED);
    else if (ifHead !== null && ifHeadSeq !== model.head) assert.equal(outcome, APPEND_HEAD_MISMATCH);
    else if (bytes > this.#setup.dataBytesMax) assert.equal(outcome, APPEND_TOO_LARGE);
    else if (!refused) assert.equal(outcome, APPENDED, 'nothing but memory can be in the way');
    else assert.ok(outcome === APPENDED || outcome === APPEND_NO_MEMORY);

    if (outcome === APPENDED) this.#appended(texts, type, refused);
    else this.#notAppended(outcome, bytes, texts.length);
    this.#assertPositions();
  }

  /** One event whose frame is as large as the whole ring may be, as the ring is, or as its free room; and `off`. */
  appendExactly(what: 'limit' | 'ring' | 'room', off: number): void {
    const { model } = this;
    const ring = this.#capacity().bytes;
    const bytes = { limit: this.#setup.dataBytesMax, ring, room: ring - model.keptBytes }[what] + off;
    const idLine = `id: ${model.epoch}.${model.head + 1}\n`.length;
    const size = bytes - idLine - FRAME_OVERHEAD_BYTES;
    if (size >= 0) this.append([size], null, null);
  }

  /** Reads after a cursor `back` behind the head, which may be below the floor. */
  read(back: number, bytesMax: number): void {
    const { model } = this;
    const cursor = Math.max(0, model.head - back);
    const found = this.#reader.read(this.handle, cursor, bytesMax, this.#run);
    assert.equal(this.#reader.floorSeq, model.floor);
    assert.equal(this.#reader.committedSeq, model.head);
    assert.equal(this.#reader.closed, model.closed);
    if (cursor === model.head) return assert.equal(found, READ_CAUGHT_UP);
    if (cursor + 1 < model.floor) return assert.equal(found, READ_OVERTAKEN);
    assert.equal(found, READ_OK);
    const expected = model.runAfter(cursor, bytesMax);
    assert.equal(this.#run.firstSeq, cursor + 1);
    assert.equal(this.#run.lastSeq, expected.lastSeq);
    assert.equal(Buffer.from(this.#run.frames).toString('latin1'), expected.frames);
  }

  /** Everything that is kept, read to the end. */
  readAll(): void {
    for (let back = this.model.keptEvents; back > 0; back = this.model.head - this.#run.lastSeq) {
      this.read(back, 1024);
    }
    this.read(this.model.keptEvents + 1, 1);
    this.read(0, 1);
  }

  trimToRetention(): void {
    const held = this.#heldWhile(layout.DIRTY_MASK_OFFSET);
    trimToRetention(this.#rings, this.handle);
    this.model.evictFor(this.#floor(), held);
    this.model.assertWithin(held);
    this.#assertPositions();
  }

  /** Evicts up to a seq, as age does; `up` above the floor, which may be beyond the head. */
  trimBelow(up: number): void {
    const seq = this.model.floor + up;
    trimBelow(this.#rings, this.handle, seq);
    this.model.evict(Math.min(seq, this.model.head + 1));
    if (this.model.keptEvents === 0) {
      assert.deepEqual(this.#capacity(), { bytes: 0, events: 0 }, 'an empty stream gives its rings back');
    }
    this.#assertPositions();
  }

  /** Sets or clears what edges and publishers set: who reads here, and who has not read all. */
  setMasks(interest: number, dirty: number): void {
    this.#rings.i32[i32At(this.#slot, layout.INTEREST_MASK_OFFSET)] = interest;
    this.#rings.i32[i32At(this.#slot, layout.DIRTY_MASK_OFFSET)] = dirty;
  }

  close(): void {
    assert.equal(closeStream(this.#rings, this.handle, NOW_MS), true);
    this.model.closed = true;
    this.#assertPositions();
  }

  /** Takes the slot away from its stream and gives it to another one. */
  reopen(): void {
    assert.equal(removeStream(this.#rings, this.handle), true);
    assert.deepEqual(this.#capacity(), { bytes: 0, events: 0 }, 'a removed stream gives its rings back');
    this.stale.push(this.handle);
    this.#assertStaleIsGone();
    this.model = this.#newModel();
    this.handle = this.#open();
    this.#assertStaleIsGone();
    this.#assertPositions();
  }

  #appended(texts: readonly string[], type: string | null, refused: boolean): void {
    const { model } = this;
    assert.equal(this.#appender.firstSeq, model.head + 1);
    model.append(texts, type);
    assert.equal(this.#appender.lastSeq, model.head);

    const held = this.#heldWhile(layout.INTEREST_MASK_OFFSET);
    const floor = this.#floor();
    const floorMoved = floor > model.floor;
    if (floorMoved && !model.isSuperfluous(floor, held)) {
      this.#assertNoRoomFor(floor - 1, refused);
    }
    model.evict(floor);
    model.assertWithin(held);
  }

  /** A kept event may go only when the ring cannot hold it together with the newer ones, and cannot grow. */
  #assertNoRoomFor(seq: number, refused: boolean): void {
    const { bytes, events } = this.#capacity();
    const needed = this.model.bytesFrom(seq);
    const tooManyBytes = needed > bytes && (bytes === this.#setup.dataBytesMax || refused);
    const tooManyEvents = this.model.head - seq + 1 > events && refused;
    assert.ok(tooManyBytes || tooManyEvents, `event ${seq} was evicted without need`);
  }

  #notAppended(outcome: number, bytes: number, count: number): void {
    const capacity = this.#capacity();
    if (outcome === APPEND_NO_MEMORY) {
      assert.ok(bytes > capacity.bytes || count > capacity.events, 'it was refused although it fits');
      this.model.evictFor(this.#floor(), this.#heldWhile(layout.INTEREST_MASK_OFFSET));
    } else if (outcome === APPEND_CLOSED || outcome === APPEND_HEAD_MISMATCH) {
      assert.equal(this.#appender.lastSeq, this.model.head);
    }
  }

  #assertPositions(): void {
    const { model } = this;
    const at = readPositions(this.#rings, this.handle);
    assert.ok(at !== null);
    assert.deepEqual(
      { epoch: at.epoch, floor: at.floor, committed: at.committed, head: at.head, bytes: at.bytes },
      {
        epoch: model.epoch,
        floor: model.floor,
        committed: model.head,
        head: model.head,
        bytes: model.keptBytes,
      },
    );
    assert.equal(at.closed, model.closed);
    assert.equal(at.evictedEvents, model.floor - this.#setup.firstSeq);
    assert.equal(this.#rings.i32[i32At(this.#slot, layout.LOCK_OFFSET)], 0, 'the lock is free again');
  }

  #assertStaleIsGone(): void {
    for (const handle of this.stale.slice(-3)) {
      assert.equal(this.#appender.append(handle, this.#batchOf(['x'], null), NOW_MS, ANY_HEAD), APPEND_GONE);
      assert.equal(this.#reader.read(handle, 0, 1024, this.#run), READ_GONE);
      assert.equal(this.#reader.look(handle), READ_GONE);
      assert.equal(readPositions(this.#rings, handle), null);
      assert.equal(closeStream(this.#rings, handle, NOW_MS), false);
      assert.equal(removeStream(this.#rings, handle), false);
      trimBelow(this.#rings, handle, 2 ** 53 - 1);
    }
  }

  #newModel(): StreamModel {
    this.#opened++;
    return new StreamModel(
      `epoch${this.#slot}${String(this.#opened).padStart(4, '0')}`,
      this.#setup.firstSeq,
    );
  }

  #open(): StreamHandle {
    const { limits, dataBytesMax, firstSeq, firstPosition } = this.#setup;
    const handle = openRingStream(this.#rings, this.#slot, {
      epoch: this.model.epoch,
      ...limits,
      dataBytesMax,
    });
    this.#rings.f64[f64At(this.#slot, layout.FLOOR_SEQ_OFFSET)] = firstSeq;
    this.#rings.f64[f64At(this.#slot, layout.COMMITTED_SEQ_OFFSET)] = firstSeq - 1;
    this.#rings.f64[f64At(this.#slot, layout.HEAD_SEQ_OFFSET)] = firstSeq - 1;
    this.#rings.i32[i32At(this.#slot, layout.HEAD_POSITION_OFFSET)] = firstPosition;
    this.#rings.i32[i32At(this.#slot, layout.FLOOR_POSITION_OFFSET)] = firstPosition;
    return handle;
  }

  /** Texts unlike all before, so that bytes from another time or place never look right. No seq is above 2^53-1. */
  #makeTexts(sizes: readonly number[]): string[] {
    return sizes.slice(0, Number.MAX_SAFE_INTEGER - this.model.head).map((size) => {
      const mark = `${this.#slot}/${this.#opened}/${this.#texts++}/`;
      return mark.repeat(Math.ceil(size / mark.length)).slice(0, size);
    });
  }

  #batchOf(texts: readonly string[], type: string | null): FrameBatch {
    this.#batch.reset();
    for (const text of texts) this.#batch.pushText(Buffer.from(text, 'latin1'), 0, text.length, type);
    return this.#batch;
  }

  #capacity(): { bytes: number; events: number } {
    const data = this.#rings.i32[i32At(this.#slot, layout.DATA_ORDER_OFFSET)] as number;
    const index = this.#rings.i32[i32At(this.#slot, layout.INDEX_ORDER_OFFSET)] as number;
    return { bytes: data === 0 ? 0 : 2 ** data, events: index === 0 ? 0 : 2 ** (index - 2) };
  }

  #floor(): number {
    return this.#rings.f64[f64At(this.#slot, layout.FLOOR_SEQ_OFFSET)] as number;
  }

  /** What is kept while a mask says that somebody reads, or has not read all. */
  #heldWhile(maskOffset: number): Limits {
    const { limits } = this.#setup;
    return this.#rings.i32[i32At(this.#slot, maskOffset)] === 0 ? limits : whileUnread(limits);
  }

  #refusals(): number {
    return this.#rings.arena.usage().refusals;
  }
}
