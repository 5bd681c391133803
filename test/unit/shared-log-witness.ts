import assert from 'node:assert/strict';
import { type Cursor, parseCursor } from '#gapless/core/cursor.js';
import type { StreamConfig } from '#gapless/core/retention.js';

interface Event {
  readonly line: string;
  /** Before it was published; null: it was only seen. */
  readonly beganAtMs: number | null;
}

/** One epoch of a stream. */
interface Seen {
  readonly events: Map<number, Event>;
  floor: number;
  head: number;
  isClosed: boolean;
}

export interface Look {
  readonly epoch: string;
  readonly floor: number;
  readonly head: number;
  readonly data: readonly string[];
  readonly acked: Readonly<Record<string, string>>;
}

/** Bytes of an event in the log beside its data. */
const PART_BYTES = 'data: \n\n'.length;

/** What clients were told of the streams of a log, which stays true. */
export class SharedLogWitness {
  readonly #epochs = new Map<string, Seen>();
  /** Epoch of each stream for as long as nobody has asked for its end, or lost some of it. */
  readonly #lasting = new Map<string, string>();
  readonly #mayGo = new Set<string>();
  /** What named subscribers were told to have, by stream and name, as long as nobody has forgotten them. */
  readonly #told = new Map<string, { epoch: string; seq: number }>();
  /** Where they hold what they have not acknowledged, by the same. */
  readonly #holds = new Set<string>();

  /** @param wasClosed whether the stream was known to have ended before this was published. */
  placed(
    stream: string,
    { epoch, first, last, isDuplicate }: { epoch: string; first: number; last: number; isDuplicate: boolean },
    { lines, beganAtMs, closed }: { lines: readonly string[]; beganAtMs: number; closed: string | null },
  ): void {
    assert.equal(last - first + 1, lines.length);
    assert.ok(isDuplicate || closed !== epoch, 'a stream that has ended goes on');
    for (const [index, line] of lines.entries()) this.#event(epoch, first + index, line, beganAtMs);
    // That it was published before is true whatever has become of the stream since.
    if (!isDuplicate) this.#lives(stream, epoch);
  }

  /** An epoch that somebody was told of. */
  #lives(stream: string, epoch: string): void {
    if (this.#mayGo.has(stream)) return;
    const lasting = this.#lasting.get(stream);
    assert.ok(
      lasting === undefined || lasting === epoch,
      `${stream} went from ${lasting} to ${epoch} by itself`,
    );
    this.#lasting.set(stream, epoch);
  }

  read(epoch: string, seq: number, line: string): void {
    this.#event(epoch, seq, line, null);
  }

  /** It may be removed, and go by itself. */
  mayGo(stream: string): void {
    this.#mayGo.add(stream);
  }

  /** The log has lost something. */
  lost(): void {
    this.#lasting.clear();
  }

  ended(epoch: string): void {
    this.#of(epoch).isClosed = true;
  }

  /** The epoch, if it has ended. */
  closedOf(epoch: string | undefined): string | null {
    return epoch !== undefined && this.#epochs.get(epoch)?.isClosed === true ? epoch : null;
  }

  /** @param before what was known before it asked. */
  told(stream: string, name: string, cursor: { epoch: string; seq: number }, before: Cursor | null): void {
    if (before?.epoch === cursor.epoch)
      assert.ok(
        cursor.seq >= before.seq,
        `${name} of ${stream} went back from ${before.seq} to ${cursor.seq}`,
      );
    const known = this.toldOf(stream, name);
    if (known?.epoch === cursor.epoch && known.seq >= cursor.seq) return;
    this.#told.set(`${stream}/${name}`, { ...cursor });
  }

  toldOf(stream: string, name: string): Cursor | null {
    return this.#told.get(`${stream}/${name}`) ?? null;
  }

  holds(stream: string, name: string, epoch: string): void {
    this.#holds.add(`${stream}/${name}/${epoch}`);
  }

  headOf(epoch: string): number {
    return Math.max(0, ...this.#of(epoch).events.keys());
  }

  forgotten(stream: string, name: string): void {
    this.#told.delete(`${stream}/${name}`);
    for (const key of this.#holds) if (key.startsWith(`${stream}/${name}/`)) this.#holds.delete(key);
  }

  /** What a broker says of a stream while nothing else goes on. */
  looked(
    stream: string,
    { epoch, floor, head, data, acked }: Look,
    { config, oldMs }: { config: StreamConfig; oldMs: number },
  ): void {
    this.#lives(stream, epoch);
    const seen = this.#of(epoch);
    const where = `${stream} ${epoch} [${floor}, ${head}]`;
    assert.ok(floor >= seen.floor, `the floor of ${where} was ${seen.floor}`);
    assert.ok(head >= seen.head, `the head of ${where} was ${seen.head}`);
    assert.equal(data.length, head - floor + 1, where);
    for (const [index, line] of data.entries()) this.#event(epoch, floor + index, line, null);
    assert.equal(new Set(data).size, data.length, `${where} has an event twice: ${data}`);
    for (const seq of seen.events.keys()) assert.ok(seq <= head, `${where} lost ${seq} (I1)`);
    Object.assign(seen, { floor, head });
    this.#judgeFloor(seen, where, { config, oldMs });
    for (const [key, told] of this.#told) {
      const [ofStream, name] = key.split('/');
      if (ofStream !== stream || told.epoch !== epoch) continue;
      const known = parseCursor(acked[name as string] ?? '');
      assert.ok(
        known?.epoch === epoch && known.seq >= told.seq,
        `${where}: ${name} had ${told.seq}: ${acked[name as string]}`,
      );
      if (config.overflow === 'reject' && this.#holds.has(`${key}/${epoch}`))
        assert.ok(floor <= known.seq + 1, `${where}: ${name} holds ${known.seq + 1}`);
    }
  }

  #judgeFloor(
    { events, floor, head }: Seen,
    where: string,
    { config: { retention }, oldMs }: { config: StreamConfig; oldMs: number },
  ): void {
    if (retention.events > 0) {
      assert.ok(floor === 1 || head - floor + 1 >= retention.events, `${where} keeps too few`);
    } else if (retention.bytes > 0) {
      let bytes = 0;
      for (let seq = floor; seq <= head; seq++) bytes += (events.get(seq)?.line.length ?? 0) + PART_BYTES;
      assert.ok(floor === 1 || bytes >= retention.bytes, `${where} keeps ${bytes} bytes`);
    } else if (retention.ageMs > 0) {
      for (const [seq, { beganAtMs }] of events)
        assert.ok(seq >= floor || (beganAtMs ?? 0) < oldMs - retention.ageMs, `${where}: ${seq} is young`);
    } else {
      assert.equal(floor, 1, where);
    }
  }

  #event(epoch: string, seq: number, line: string, beganAtMs: number | null): void {
    const { events } = this.#of(epoch);
    const before = events.get(seq);
    assert.equal(line, before?.line ?? line, `${epoch}.${seq} (I3)`);
    events.set(seq, { line, beganAtMs: before?.beganAtMs ?? beganAtMs });
  }

  #of(epoch: string): Seen {
    let seen = this.#epochs.get(epoch);
    if (seen === undefined) {
      seen = { events: new Map(), floor: 1, head: 0, isClosed: false };
      this.#epochs.set(epoch, seen);
    }
    return seen;
  }
}
