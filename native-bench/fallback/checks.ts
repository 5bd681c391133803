const LF = 0x0a;

/** The body of a chunked answer with status 200, out of the bytes of its connection. */
export class ResponseBody {
  readonly #take: (bytes: Buffer) => void;
  readonly #fail: (problem: string) => never;
  #head = '';
  #isInBody = false;
  /** Of the chunk, with the line break after it. */
  #left = 0;
  #size = '';

  constructor(take: (bytes: Buffer) => void, fail: (problem: string) => never) {
    this.#take = take;
    this.#fail = fail;
  }

  take(bytes: Buffer): void {
    let at = this.#isInBody ? 0 : this.#takeHead(bytes);
    while (at < bytes.length) {
      if (this.#left === 0) {
        at = this.#takeSize(bytes, at);
        continue;
      }
      const end = Math.min(bytes.length, at + this.#left);
      const ofData = Math.min(end - at, Math.max(0, this.#left - 2));
      if (ofData > 0) this.#take(bytes.subarray(at, at + ofData));
      this.#left -= end - at;
      at = end;
    }
  }

  /** @returns where the body begins. */
  #takeHead(bytes: Buffer): number {
    const before = this.#head.length;
    this.#head += bytes.toString('latin1');
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return bytes.length;
    if (!this.#head.startsWith('HTTP/1.1 200 ')) this.#fail(this.#head);
    this.#isInBody = true;
    return end + 4 - before;
  }

  #takeSize(bytes: Buffer, at: number): number {
    const feed = bytes.indexOf(LF, at);
    this.#size += bytes.toString('latin1', at, feed < 0 ? bytes.length : feed + 1);
    if (feed < 0) return bytes.length;
    const size = Number.parseInt(this.#size, 16);
    this.#size = '';
    if (!(size > 0)) this.#fail('the server ended the stream');
    this.#left = size + 2;
    return feed + 1;
  }
}

/** Every frame after the priming one must have the next id, and the data of the run (contract 4.2, 4.3). */
export class FrameChecker {
  /** Of the last whole frame. */
  seq = 0;
  received = 0;
  readonly primed: Promise<void>;
  readonly #data: string;
  readonly #fail: (problem: string) => never;
  #setPrimed: () => void = () => undefined;
  #epoch: string | null = null;
  #rest = '';

  constructor(data: string, fail: (problem: string) => never) {
    this.#data = data;
    this.#fail = fail;
    this.primed = new Promise((resolve) => {
      this.#setPrimed = resolve;
    });
  }

  take(bytes: Buffer): void {
    const text = this.#rest + bytes.toString('latin1');
    let start = 0;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', start)) {
      this.#check(text.slice(start, end));
      start = end + 2;
    }
    this.#rest = text.slice(start);
  }

  #check(frame: string): void {
    if (frame === '' || frame.startsWith(':') || frame.startsWith('retry:')) return;
    if (this.#epoch === null) return this.#start(frame);
    const expected = `id: ${this.#epoch}.${this.seq + 1}\ndata: ${this.#data}`;
    if (frame !== expected) this.#fail(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(frame)}`);
    this.seq++;
    this.received++;
  }

  #start(frame: string): void {
    const [, epoch, seq] = /^id: ([^.\n]+)\.(\d+)$/.exec(frame) ?? [];
    if (epoch === undefined) this.#fail(`no priming frame but ${JSON.stringify(frame)}`);
    this.#epoch = epoch ?? null;
    this.seq = Number(seq);
    this.#setPrimed();
  }
}
