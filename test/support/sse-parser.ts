export interface SseEvent {
  /** What `lastEventId` would be: the last id that came, with this event or before it. */
  id: string;
  /** Whether this frame itself carried an id. */
  carriesId: boolean;
  type: string;
  data: string;
  /** The value of the field `encoding`, which the standard ignores (contract 3.1). */
  encoding: string | null;
}

export interface SseHandler {
  onEvent(event: SseEvent): void;
  /** A frame with an id and no data: it moves the last event id without an event (contract 4.2, 4.9). */
  onIdOnly(id: string): void;
  onRetry(ms: number): void;
  onComment(text: string): void;
  /** A line that is neither empty nor holds a colon (contract 4.3 has none). */
  onLineWithoutColon(line: string): void;
}

/**
 * Interprets an event stream as the WHATWG text says, from chunks cut anywhere, including inside a UTF-8 sequence. A
 * frame that is cut before its blank line is dropped, as the standard asks: what was not dispatched was not seen.
 */
export class SseParser {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #rest = '';
  #lastEventId = '';
  #data: string | null = null;
  #type = '';
  #encoding: string | null = null;
  #idBuffer = '';
  #carriesId = false;
  #stopped = false;

  constructor(readonly handler: SseHandler) {}

  /** The id that a client which breaks now would send as `Last-Event-ID`. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /** Nothing more is interpreted, not even the rest of the chunk in hand: the reader died here. */
  stop(): void {
    this.#stopped = true;
  }

  push(chunk: Uint8Array): void {
    let text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    if (text.includes('\r')) text = this.#normaliseBreaks(text);
    let start = 0;
    for (let end = text.indexOf('\n'); end >= 0 && !this.#stopped; end = text.indexOf('\n', start)) {
      this.#interpret(text.slice(start, end));
      start = end + 1;
    }
    this.#rest = text.slice(start);
  }

  /** All breaks become LF. A CR at the very end stays as it is until it is known whether LF follows. */
  #normaliseBreaks(text: string): string {
    const held = text.endsWith('\r') ? '\r' : '';
    return text.slice(0, text.length - held.length).replace(/\r\n?/g, '\n') + held;
  }

  #interpret(line: string): void {
    const colon = line.indexOf(':');
    if (line === '') this.#dispatch();
    else if (colon === 0) this.handler.onComment(line.slice(1));
    else this.#setField(line, colon);
  }

  #setField(line: string, colon: number): void {
    if (colon < 0) this.handler.onLineWithoutColon(line);
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    switch (name) {
      case 'data':
        this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
        break;
      case 'id':
        if (!value.includes('\0')) {
          this.#idBuffer = value;
          this.#carriesId = true;
        }
        break;
      case 'event':
        this.#type = value;
        break;
      case 'encoding':
        this.#encoding = value;
        break;
      case 'retry':
        if (/^\d+$/.test(value)) this.handler.onRetry(Number(value));
        break;
    }
  }

  #dispatch(): void {
    this.#lastEventId = this.#idBuffer;
    if (this.#data !== null) {
      this.handler.onEvent({
        id: this.#lastEventId,
        carriesId: this.#carriesId,
        type: this.#type === '' ? 'message' : this.#type,
        data: this.#data,
        encoding: this.#encoding,
      });
    } else if (this.#carriesId) {
      this.handler.onIdOnly(this.#lastEventId);
    }
    this.#data = null;
    this.#type = '';
    this.#encoding = null;
    this.#carriesId = false;
  }
}
