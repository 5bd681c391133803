import type { IncomingHttpHeaders } from 'node:http';
import { Mismatch } from './expect.js';

/** One whole HTTP answer. */
export class Answer {
  constructor(
    readonly status: number,
    readonly headers: IncomingHttpHeaders,
    readonly body: Buffer,
  ) {}

  header(name: string): string | undefined {
    const value = this.headers[name.toLowerCase()];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  get text(): string {
    return this.body.toString();
  }

  /** @throws {Mismatch} when the body is not JSON. */
  json(): unknown {
    try {
      return JSON.parse(this.text);
    } catch {
      throw new Mismatch(`the body of a ${this.status} is not JSON: ${this.text.slice(0, 100)}`);
    }
  }
}
