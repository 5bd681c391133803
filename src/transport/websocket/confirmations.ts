/**
 * Passes on what a peer confirms to have: one acknowledgement at a time, and always the newest, so that a peer which
 * confirms often asks no more than the coordinator, or the disk, can answer.
 */

import type { Cursor } from '../../core/cursor.js';
import { RequestError } from '../../errors.js';

export class Confirmations {
  readonly #acknowledge: (cursor: Cursor) => Promise<unknown>;
  #newest: Cursor | null = null;
  #passedSeq = -1;
  #isPassing = false;

  constructor(acknowledge: (cursor: Cursor) => Promise<unknown>) {
    this.#acknowledge = acknowledge;
  }

  confirm(cursor: Cursor): void {
    if (cursor.seq <= (this.#newest?.seq ?? -1)) return;
    this.#newest = cursor;
    if (!this.#isPassing) void this.#pass();
  }

  async #pass(): Promise<void> {
    this.#isPassing = true;
    try {
      while (this.#newest !== null && this.#newest.seq > this.#passedSeq) {
        const { seq } = this.#newest;
        await this.#acknowledge(this.#newest);
        this.#passedSeq = seq;
      }
    } catch (error) {
      // The stream has gone, or its log cannot commit: a later one says as much and more.
      if (!(error instanceof RequestError)) throw error;
    } finally {
      this.#isPassing = false;
    }
  }
}
