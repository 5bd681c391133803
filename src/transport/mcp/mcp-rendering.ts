/**
 * Frames of a stream as clients of MCP are given them: another id, and the type that MCP writes out (contract 12.3). One
 * that has a type keeps it.
 */

import type { Rendered, Rendering } from '../../broker/rendering.js';
import { endOfFrame } from '../../core/frame-scan.js';
import { MESSAGE_PREFIX, NOTE_PREFIX } from '../../mcp/stream/stream-notes.js';

const LF = 0x0a;
const DOT = 0x2e;
const EVENT_LINE = Buffer.from('event: message\n');
/** What the first line of a frame after its id begins with where it has a type; `data` else. */
const E = 0x65;
/** Of what the front writes beside the messages, which no client is shown (mcp/stream/stream-notes.ts). */
const MESSAGE = Buffer.from(`event: ${MESSAGE_PREFIX}`);
const NOTE = Buffer.from(`event: ${NOTE_PREFIX}`);
const NOTHING = new Uint8Array();
const WITHOUT_IDS: Rendering = { key: 'mcp', filters: false, render: renderWithoutIds };

/** @param prefix of the ids of this stream, see event-id.ts; null: it has none. */
export function mcpRendering(prefix: string | null): Rendering {
  if (prefix === null) return WITHOUT_IDS;
  const idStart = Buffer.from(`id: ${prefix}`);
  return { key: `mcp:${prefix}`, filters: false, render: (frames) => render(frames, idStart) };
}

/** `id: <epoch>.<seq>\n…` becomes `id: <prefix>.<seq>\nevent: message\n…`. */
function render(frames: Uint8Array, idStart: Uint8Array): Rendered {
  const parts: Uint8Array[] = [];
  let count = 0;
  for (let at = 0; at < frames.length; ) {
    const dot = frames.indexOf(DOT, at);
    const rest = frames.indexOf(LF, dot) + 1;
    const end = endOfFrame(frames, at);
    at = end;
    if (frames[rest] !== E) {
      parts.push(idStart, frames.subarray(dot, rest), EVENT_LINE, frames.subarray(rest, end));
    } else if (standsAt(frames, rest, MESSAGE)) {
      const data = frames.indexOf(LF, rest) + 1;
      parts.push(idStart, frames.subarray(dot, rest), EVENT_LINE, frames.subarray(data, end));
    } else if (!standsAt(frames, rest, NOTE)) {
      parts.push(idStart, frames.subarray(dot, end));
    } else {
      continue;
    }
    count++;
  }
  return { frames: Buffer.concat(parts), count };
}

/** `id: <epoch>.<seq>\n…` becomes `event: message\n…`. Where nobody resumes nothing stands beside the messages. */
function renderWithoutIds(frames: Uint8Array): Rendered {
  const parts: Uint8Array[] = [];
  let count = 0;
  for (let at = 0; at < frames.length; count++) {
    const rest = frames.indexOf(LF, at) + 1;
    const end = endOfFrame(frames, at);
    parts.push(frames[rest] === E ? NOTHING : EVENT_LINE, frames.subarray(rest, end));
    at = end;
  }
  return { frames: Buffer.concat(parts), count };
}

function standsAt(frames: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (frames[at + i] !== text[i]) return false;
  return true;
}
