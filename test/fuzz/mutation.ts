import fc from 'fast-check';

/** One change to bytes. Places are fractions of the length, so that a change means something for any input. */
export interface Mutation {
  kind: 'flip' | 'overwrite' | 'insert' | 'remove' | 'repeat' | 'cut';
  at: number;
  length: number;
  bytes: Uint8Array;
}

/** What parsers stumble over: breaks, ends, halves of characters, lengths that promise the world. */
const TOKENS: Uint8Array[] = [
  ...[
    '\0',
    '\r',
    '\n',
    '\r\n',
    '\r\n\r\n',
    '\n\n',
    '%',
    '%00',
    '%ff',
    '..',
    '/',
    '?',
    '&',
    '=',
    '#',
    ' ',
    '\t',
    ':',
    ';',
    ',',
  ],
  ...[
    '"',
    '\\',
    '\\ud800',
    '\\u0000',
    '{',
    '}',
    '[',
    ']',
    '[['.repeat(200),
    'null',
    '-0',
    '1e999',
    '__proto__',
  ],
  ...['0', '9'.repeat(25), '18446744073709551616', '-1', '0x', 'ffffffff', '0\r\n\r\n', 'earliest', 'latest'],
  ...[
    'Content-Length: 5\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Expect: 100-continue\r\n',
    'HTTP/1.0',
    'HTTP/2.0',
  ],
].map((text) => Buffer.from(text, 'latin1'));
const BINARY_TOKENS: Uint8Array[] = [
  [0xc3],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xef, 0xbb, 0xbf],
  [0xdd, 0xff, 0xff, 0xff, 0xff],
  [0xdf, 0xff, 0xff, 0xff, 0xff],
  [0xc6, 0xff, 0xff, 0xff, 0xff],
  [0xdb, 0xff, 0xff, 0xff, 0xff],
  [0xc1],
  [0xc7, 0x0c, 0xff],
  Array.from({ length: 200 }, () => 0x91),
].map((bytes) => Uint8Array.from(bytes));

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom('flip', 'overwrite', 'insert', 'insert', 'remove', 'repeat', 'cut'),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.integer({ min: 1, max: 16 }),
  bytes: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 6 }),
    fc.constantFrom(...TOKENS, ...BINARY_TOKENS),
  ),
});

/** Up to `max` changes, often none. */
export function mutations(max: number): fc.Arbitrary<Mutation[]> {
  return fc.array(mutation, { maxLength: max });
}

export function mutate(bytes: Uint8Array, changes: readonly Mutation[]): Buffer {
  return changes.reduce<Buffer>(apply, Buffer.from(bytes));
}

/** The same for text of one byte a character, such as a header's value. */
export function mutateText(text: string, changes: readonly Mutation[]): string {
  return mutate(Buffer.from(text, 'latin1'), changes).toString('latin1');
}

function apply(bytes: Buffer, { kind, at: fraction, length, bytes: given }: Mutation): Buffer {
  const at = Math.floor(fraction * bytes.length);
  const [before, piece, after] = [
    bytes.subarray(0, at),
    bytes.subarray(at, at + length),
    bytes.subarray(at + length),
  ];
  switch (kind) {
    case 'flip': {
      const flipped = Buffer.from(bytes);
      if (at < flipped.length) flipped[at] = (flipped[at] as number) ^ (1 << (length % 8));
      return flipped;
    }
    case 'overwrite':
      return Buffer.concat([before, given, bytes.subarray(at + given.length)]);
    case 'insert':
      return Buffer.concat([before, given, bytes.subarray(at)]);
    case 'remove':
      return Buffer.concat([before, after]);
    case 'repeat':
      return Buffer.concat([before, piece, piece, after]);
    case 'cut':
      return Buffer.from(before);
  }
}
