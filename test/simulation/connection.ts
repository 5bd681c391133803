import type { Prng } from '../support/prng.js';
import type { Schedule, Task, Thread } from './schedule.js';

/** How a connection behaves; drawn for each. */
export interface ConnectionTraits {
  /** Bytes that the operating systems on both sides take before the reader has read any. */
  readonly windowBytes: number;
  /** Bytes that the peer reads at a time, at most. */
  readonly readBytesMax: number;
  /** Time between two reads, at most, milliseconds. */
  readonly readPauseMs: number;
  readonly latencyMs: number;
  /** Whether a write that did not fit is admitted by the one after it only: the library collects small writes. */
  readonly saysFullLate: boolean;
}

/** What the peer sees. Nothing comes after `ended`. */
export interface Peer {
  head(head: ResponseHead): void;
  bytes(chunk: Uint8Array): void;
  /** `end`: all of the answer has come. `broken`: it has not, as far as the peer can tell. */
  ended(how: 'end' | 'broken'): void;
}

export interface ResponseHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the server's side hears of its connection. */
export interface ServerEnd {
  writable(): void;
  /** The peer is gone, or the server has closed the socket itself. */
  aborted(): void;
}

/** The library gives a peer that takes nothing up after about so long (facts of the library in use). */
const STALLED_MS_MAX = 10_000;
/** Small writes are collected up to so many bytes before the socket is tried. */
const COLLECTED_BYTES_MAX = 16 * 1024;
const HURRIED_BYTES = 64 * 1024;

interface Piece {
  readonly bytes: Uint8Array;
  /** Not null: these bytes are the head. */
  readonly head: ResponseHead | null;
}

/**
 * The way of an answer from a thread of the broker to its peer, byte by byte: what was written lies first in the
 * library, whose buffer has no bound, then in the window of the network, and is read in pieces that have nothing to do
 * with those that were written. Either side may lose the connection at any byte, and the other may not be told.
 */
export class Connection {
  clientOpen = true;
  #serverOpen = true;
  readonly #schedule: Schedule;
  readonly #prng: Prng;
  #traits: ConnectionTraits;
  readonly #server: Thread;
  readonly #outside: Thread;
  readonly #peer: Peer;
  readonly #closed: () => void;
  readonly #pieces: Piece[] = [];
  #serverEnd: ServerEnd | null = null;
  /** Bytes written, those of them that have left the library, and those of them that the peer has read. */
  #written = 0;
  #sent = 0;
  #read = 0;
  /** The peer's data end here, and how; null: not yet. */
  #last: { readonly at: number; readonly how: 'end' | 'broken' } | null = null;
  #reading = false;
  #paused = false;
  /** Whether the library holds something since it last said that it does not. */
  #buffered = false;
  #progressAtMs = 0;
  #stallCheck: Task | null = null;

  constructor(parts: {
    schedule: Schedule;
    prng: Prng;
    traits: ConnectionTraits;
    server: Thread;
    outside: Thread;
    peer: Peer;
    /** Called once, when the server's side is over. */
    closed: () => void;
  }) {
    this.#schedule = parts.schedule;
    this.#prng = parts.prng;
    this.#traits = parts.traits;
    this.#server = parts.server;
    this.#outside = parts.outside;
    this.#peer = parts.peer;
    this.#closed = parts.closed;
  }

  /** Whether the server's side stands. */
  get serverOpen(): boolean {
    return this.#serverOpen;
  }

  set serverEnd(end: ServerEnd) {
    this.#serverEnd = end;
  }

  /** @returns what the library says: false, the rest is buffered. */
  write(bytes: Uint8Array, head: ResponseHead | null = null): boolean {
    const wasFull = this.#written > this.#sent;
    this.#pieces.push({ bytes: new Uint8Array(bytes), head });
    this.#written += bytes.length;
    this.#send();
    if (this.#traits.saysFullLate && !wasFull && bytes.length < COLLECTED_BYTES_MAX) return true;
    return this.#written === this.#sent;
  }

  /** The answer is complete. What the library holds is still sent. */
  finish(): void {
    this.#closeServer();
    this.#last ??= { at: this.#written, how: 'end' };
    this.#scheduleRead();
  }

  /** The server closes the socket: what the library holds is lost, and what is in the network may be. */
  close(): void {
    if (!this.#serverOpen) return;
    this.#closeServer();
    this.#breakSomewhere();
    this.#serverEnd?.aborted();
  }

  /** The process is no more. Its peer is told, or, where the machine went with it, is not. */
  crash(isTold: boolean): void {
    this.#serverOpen = false;
    this.#written = this.#sent;
    if (isTold) this.#breakSomewhere();
    else this.#last = { at: Number.POSITIVE_INFINITY, how: 'broken' };
  }

  /** The peer is gone, and takes nothing more. The server is told, or left with half a connection. */
  abandon(isTold: boolean): void {
    if (!this.clientOpen) return;
    this.clientOpen = false;
    if (!isTold) return;
    this.#schedule.after(this.#server, this.#latency(), () => this.#abort());
  }

  /** The peer reads as fast as it can from now on. */
  hurry(): void {
    this.#traits = { ...this.#traits, readPauseMs: 0, readBytesMax: HURRIED_BYTES };
  }

  /** Has the peer read nothing for a while. */
  pause(ms: number): void {
    this.#paused = true;
    this.#schedule.after(this.#outside, ms, () => {
      this.#paused = false;
      this.#scheduleRead();
    });
  }

  #abort(): void {
    if (!this.#serverOpen) return;
    this.#closeServer();
    this.#serverEnd?.aborted();
  }

  #closeServer(): void {
    this.#serverOpen = false;
    this.#closed();
  }

  /** What the library holds is lost, and what is in the network may be. */
  #breakSomewhere(): void {
    this.#written = this.#sent;
    const at = this.#read + this.#prng.below(this.#sent - this.#read + 1);
    if (this.#last === null || at < this.#last.at) this.#last = { at, how: 'broken' };
    this.#scheduleRead();
  }

  /** Moves what the window takes out of the library. */
  #send(): void {
    const before = this.#sent;
    this.#sent = Math.min(this.#written, Math.max(this.#sent, this.#read + this.#traits.windowBytes));
    if (this.#sent > before) this.#progressAtMs = this.#schedule.nowMs;
    if (this.#sent < this.#written) {
      this.#buffered = true;
      this.#watchStall();
    } else if (this.#buffered) {
      this.#buffered = false;
      this.#schedule.after(this.#server, 0, () => {
        if (this.#serverOpen && this.#sent === this.#written) this.#serverEnd?.writable();
      });
    }
    this.#scheduleRead();
  }

  #watchStall(): void {
    if (this.#stallCheck !== null) return;
    const dueMs = this.#progressAtMs + STALLED_MS_MAX - this.#schedule.nowMs;
    this.#stallCheck = this.#schedule.after(this.#server, dueMs, () => {
      this.#stallCheck = null;
      if (this.#sent === this.#written || !this.#serverOpen) return;
      if (this.#schedule.nowMs - this.#progressAtMs < STALLED_MS_MAX) return this.#watchStall();
      this.#breakSomewhere();
      this.#abort();
    });
  }

  #latency(): number {
    return this.#prng.below(this.#traits.latencyMs + 1);
  }

  #scheduleRead(): void {
    if (this.#reading || this.#paused || !this.clientOpen) return;
    if (this.#read === this.#readable && !this.#isOver) return;
    this.#reading = true;
    const waitMs = this.#latency() + this.#prng.below(this.#traits.readPauseMs + 1);
    this.#schedule.after(this.#outside, waitMs, () => {
      this.#reading = false;
      if (!this.clientOpen || this.#paused) return;
      this.#deliver(1 + this.#prng.below(this.#traits.readBytesMax));
    });
  }

  get #readable(): number {
    return Math.min(this.#sent, this.#last?.at ?? this.#sent);
  }

  get #isOver(): boolean {
    return this.#last !== null && this.#read >= this.#last.at;
  }

  #deliver(bytesMax: number): void {
    let left = Math.min(bytesMax, this.#readable - this.#read);
    while (left > 0 && this.clientOpen) {
      const { bytes, head } = this.#pieces.shift() as Piece;
      const taken = Math.min(left, bytes.length);
      left -= taken;
      this.#read += taken;
      if (taken < bytes.length) this.#pieces.unshift({ bytes: bytes.subarray(taken), head });
      if (head === null) this.#peer.bytes(bytes.subarray(0, taken));
      else if (taken === bytes.length) this.#peer.head(head);
    }
    if (!this.clientOpen) return;
    if (this.#serverOpen || this.#sent < this.#written) this.#send();
    if (this.#isOver) {
      this.clientOpen = false;
      this.#peer.ended((this.#last as { how: 'end' | 'broken' }).how);
    } else this.#scheduleRead();
  }
}
