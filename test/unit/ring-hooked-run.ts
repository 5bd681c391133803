import { parseFrames } from '#gapless/core/sse-parse.js';
import { FrameRun } from '#gapless/ring/read.js';

class HookedBytes extends Uint8Array {
  beforeCopy: () => void = () => {};

  override set(array: ArrayLike<number>, offset?: number): void {
    this.beforeCopy();
    super.set(array, offset);
  }
}

/** A run that lets something happen when the reader is about to copy: after it located, before it confirms. */
export class HookedRun extends FrameRun {
  copies = 0;
  readonly #during: (copy: number) => void;

  constructor(during: (copy: number) => void) {
    super(1 << 20);
    this.#during = during;
  }

  override reserve(length: number): void {
    super.reserve(length);
    const { buffer, byteOffset } = this.frames;
    const hooked = new HookedBytes(buffer as ArrayBuffer, byteOffset, length);
    const copy = ++this.copies;
    let done = false;
    hooked.beforeCopy = () => {
      if (done) return;
      done = true;
      this.#during(copy);
    };
    this.frames = hooked;
  }
}

export function textsOf(run: FrameRun): string[] {
  return parseFrames(run.frames).map(({ data }) => Buffer.from(data).toString());
}
