import { FrameRun } from '#gapless/ring/read.js';

/** Copies in two halves with time between them, so that the ring moves on under more of the copies. */
class StretchedBytes extends Uint8Array {
  pause: () => void = () => {};

  override set(array: Uint8Array, offset = 0): void {
    const half = array.length >> 1;
    super.set(array.subarray(0, half), offset);
    this.pause();
    super.set(array.subarray(half), offset + half);
  }
}

/** A run whose copies take as long as the test likes. */
export class StretchedRun extends FrameRun {
  /** Called in the midst of each copy. */
  pause: () => void = () => {};

  override reserve(length: number): void {
    super.reserve(length);
    const { buffer, byteOffset } = this.frames;
    const stretched = new StretchedBytes(buffer as ArrayBuffer, byteOffset, length);
    stretched.pause = () => this.pause();
    this.frames = stretched;
  }
}
