/**
 * Events that prove themselves. All of an event's text follows from one number, its mark, so a copy that was torn, or
 * that mixes two events, cannot look right.
 */

const COLON = ':'.charCodeAt(0);
const ZERO = '0'.charCodeAt(0);
const NINE = '9'.charCodeAt(0);
const FILLER_FIRST = '!'.charCodeAt(0);
const FILLER_KINDS = 90;

const encoder = new TextEncoder();

/** Mostly short, now and then a quarter of a small ring. */
function fillerLength(mark: number): number {
  const mixed = Math.imul(mark, 0x9e3779b1) >>> 16;
  return mixed % 16 === 0 ? mixed % 1200 : mixed % 100;
}

function fillerByte(mark: number, at: number): number {
  return FILLER_FIRST + (((Math.imul(mark, 7) >>> 8) + 13 * at) % FILLER_KINDS);
}

/** The text of the event with this mark, a whole number above 0. */
export function markedText(mark: number): Uint8Array {
  const head = encoder.encode(`${mark}:`);
  const text = new Uint8Array(head.length + fillerLength(mark));
  text.set(head);
  for (let i = head.length; i < text.length; i++) text[i] = fillerByte(mark, i - head.length);
  return text;
}

/**
 * Reads a run of frames that must be exactly the events after a cursor. Every byte is judged.
 * @returns what is wrong with it, or null.
 */
export function judgeRun(
  frames: Uint8Array,
  expected: { epoch: string; firstSeq: number; lastSeq: number },
  seen: (seq: number, mark: number) => void,
): string | null {
  let at = 0;
  for (let seq = expected.firstSeq; seq <= expected.lastSeq; seq++) {
    const start = encoder.encode(`id: ${expected.epoch}.${seq}\ndata: `);
    if (!holds(frames, at, start)) return `no frame of ${seq} at ${at}: ${shown(frames, at)}`;
    at += start.length;
    let mark = 0;
    for (; (frames[at] as number) >= ZERO && (frames[at] as number) <= NINE; at++) {
      mark = 10 * mark + (frames[at] as number) - ZERO;
    }
    if (frames[at++] !== COLON) return `no mark in ${seq}: ${shown(frames, at)}`;
    const length = fillerLength(mark);
    for (let i = 0; i < length; i++) {
      if (frames[at + i] !== fillerByte(mark, i)) return `byte ${i} of ${seq}, mark ${mark}, is not its own`;
    }
    at += length;
    if (frames[at++] !== 0x0a || frames[at++] !== 0x0a) return `no end of ${seq}: ${shown(frames, at)}`;
    seen(seq, mark);
  }
  return at === frames.length ? null : `${frames.length - at} bytes after the last frame`;
}

function holds(frames: Uint8Array, at: number, expected: Uint8Array): boolean {
  for (let i = 0; i < expected.length; i++) if (frames[at + i] !== expected[i]) return false;
  return true;
}

function shown(frames: Uint8Array, at: number): string {
  return JSON.stringify(Buffer.from(frames.subarray(at, at + 40)).toString('latin1'));
}
