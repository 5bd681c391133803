import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HttpResponseParser, ResponseError } from '#gapless/mcp/upstream/http-response-parser.js';

interface Response {
  status: number;
  name: string;
  body: string;
  /** Sizes of its chunks; null: it says its length. */
  chunks: number[] | null;
  /** Responses before it that are none, such as 103. */
  interim: boolean;
}

const responses = fc.array(
  fc.record({
    status: fc.constantFrom(200, 202, 404, 500),
    name: fc.stringMatching(/^[!#-'*+.^-`|~0-9A-Za-z-]{1,12}$/),
    body: fc.string({ maxLength: 300 }),
    chunks: fc.option(fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 5 })),
    interim: fc.boolean(),
  }),
  { minLength: 1, maxLength: 4 },
);
const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 });

function encode({ status, name, body, chunks, interim }: Response): Buffer {
  const bytes = Buffer.from(body);
  const before = interim ? 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' : '';
  const head = `${before}HTTP/1.1 ${status} What ever\r\nX-${name}: \t a: b \r\n`;
  if (chunks === null) {
    return Buffer.concat([Buffer.from(`${head}Content-Length: ${bytes.length}\r\n\r\n`), bytes]);
  }
  const parts = [Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`)];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const chunk = bytes.subarray(at, at + (chunks[n % chunks.length] as number));
    const extension = n % 2 === 0 ? '' : ' ;a="b"';
    parts.push(Buffer.from(`${chunk.length.toString(16)}${extension}\r\n`), chunk, Buffer.from('\r\n'));
    at += chunk.length;
  }
  return Buffer.concat([...parts, Buffer.from('0\r\nTrailer: t\r\n\r\n')]);
}

test('responses are read as they were sent, one after the other, wherever the bytes are cut', () => {
  fc.assert(
    fc.property(responses, cuts, (sent, sizes) => {
      const read: { status: number; header: string | undefined; body: string; reusable: boolean }[] = [];
      let status = 0;
      let header: string | undefined;
      let body: Buffer[] = [];
      const parser = new HttpResponseParser({
        head: (head) => {
          status = head.status;
          header = [...head.headers].find(([name]) => name.startsWith('x-'))?.[1];
          body = [];
        },
        body: (bytes) => body.push(bytes),
        end: (reusable) => read.push({ status, header, body: Buffer.concat(body).toString(), reusable }),
      });
      const bytes = Buffer.concat(sent.map(encode));
      for (let at = 0, n = 0; at < bytes.length; n++) {
        const size = sizes[n % sizes.length] as number;
        parser.push(bytes.subarray(at, at + size));
        at += size;
      }
      const expected = sent.map((response) => ({
        status: response.status,
        header: 'a: b',
        body: response.body.toWellFormed(),
        reusable: true,
      }));
      assert.deepEqual(read, expected);
    }),
  );
});

test('any other bytes are refused with an error of their own, or wait for more', () => {
  const words = [
    'HTTP/1.1 200 ',
    '\r\n',
    '\r\n\r\n',
    'Content-Length: ',
    'Transfer-Encoding: chunked',
    '-1',
    '5',
  ];
  const lines = fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 5 })), { maxLength: 30 });
  fc.assert(
    fc.property(lines, (texts) => {
      const parser = new HttpResponseParser({
        head: () => undefined,
        body: () => undefined,
        end: () => undefined,
      });
      try {
        for (const text of texts) parser.push(Buffer.from(text));
      } catch (error) {
        if (!(error instanceof ResponseError)) throw error;
      }
    }),
  );
});
