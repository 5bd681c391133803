/**
 * The streams that an edge knows: found by name through the directory, which another thread keeps, and
 * remembered for as long as their handles are current.
 */

import { isCurrent } from '../ring/lifecycle.js';
import type { Rings } from '../ring/rings.js';
import { EdgeStream, type StreamRef } from './edge-stream.js';

/** The directory of streams. */
export interface DirectoryPort {
  /**
   * Finds a stream, or creates it. Null: it does not exist, and was not to be created.
   * @throws {RequestError} `too_many_streams`
   */
  resolve(name: string, create: boolean): Promise<StreamRef | null>;
}

export class EdgeStreams {
  readonly #rings: Rings;
  readonly #directory: DirectoryPort;
  /** Bounded by the number of slots: a stale entry goes when its slot comes back under another name. */
  readonly #bySlot = new Map<number, EdgeStream>();
  readonly #byName = new Map<string, EdgeStream>();
  /** Identical questions in flight are one: in a reconnect storm everybody asks for the same stream. */
  readonly #asked = new Map<string, Promise<EdgeStream | null>>();
  /** Called with a stream whose slot was given to another while somebody here still reads it. */
  readonly #replaced: (stream: EdgeStream) => void;

  constructor(options: { rings: Rings; directory: DirectoryPort; replaced: (stream: EdgeStream) => void }) {
    this.#rings = options.rings;
    this.#directory = options.directory;
    this.#replaced = options.replaced;
  }

  /** The stream if it is known here and still the same; else ask with `resolve`. */
  known(name: string): EdgeStream | null {
    const stream = this.#byName.get(name);
    if (stream === undefined) return null;
    if (isCurrent(this.#rings, stream)) return stream;
    this.#byName.delete(name);
    return null;
  }

  inSlot(slot: number): EdgeStream | undefined {
    return this.#bySlot.get(slot);
  }

  /** Asks the directory. Null: there is no such stream, and it was not to be created. */
  resolve(name: string, create: boolean): Promise<EdgeStream | null> {
    const key = `${create ? '+' : '?'}${name}`;
    let answer = this.#asked.get(key);
    if (answer === undefined) {
      answer = this.#ask(name, create).finally(() => this.#asked.delete(key));
      this.#asked.set(key, answer);
    }
    return answer;
  }

  /**
   * Makes a stream known that another thread has told of. One that is told of after the next stream of its slot is no
   * more: it is not made known, and whoever looks at it finds it gone.
   */
  adopt(ref: StreamRef): EdgeStream {
    const before = this.#bySlot.get(ref.slot);
    if (before !== undefined) {
      if (before.generation === ref.generation) return before;
      // Generations wrap, so that only differences mean something.
      if (((ref.generation - before.generation) | 0) < 0) return new EdgeStream(ref);
      this.forget(before);
      this.#replaced(before);
    }
    const stream = new EdgeStream(ref);
    this.#bySlot.set(stream.slot, stream);
    this.#byName.set(stream.name, stream);
    return stream;
  }

  /** The same of a stream that may have gone since: then null. */
  adoptCurrent(ref: StreamRef): EdgeStream | null {
    return isCurrent(this.#rings, ref) ? this.adopt(ref) : null;
  }

  forget(stream: EdgeStream): void {
    if (this.#bySlot.get(stream.slot) === stream) this.#bySlot.delete(stream.slot);
    if (this.#byName.get(stream.name) === stream) this.#byName.delete(stream.name);
  }

  async #ask(name: string, create: boolean): Promise<EdgeStream | null> {
    const ref = await this.#directory.resolve(name, create);
    return ref === null ? null : this.adopt(ref);
  }
}
