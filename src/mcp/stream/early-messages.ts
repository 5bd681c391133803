/** Characters kept; a longer answer is read out of its stream by the edge. */
const LENGTH_MAX = 16_384;
/** What an event's data cannot have in one line. */
const LINE_BREAK = /[\r\n]/;

/**
 * What went into a stream before its answer began, so that one which is whole by then need not be read back. What was
 * taken out, or cannot be told in this way, is not kept any more.
 */
export class EarlyMessages {
  #messages: string[] | null = [];
  #length = 0;

  /** A message is in the stream. */
  add(text: string): void {
    if (this.#messages === null) return;
    this.#length += text.length;
    if (this.#length > LENGTH_MAX || LINE_BREAK.test(text)) this.#messages = null;
    else this.#messages.push(text);
  }

  /** The stream has something else, or less. */
  spoil(): void {
    this.#messages = null;
  }

  /** Once. @returns null: it is not all there. */
  take(): readonly string[] | null {
    const messages = this.#messages;
    this.#messages = null;
    return messages;
  }
}
