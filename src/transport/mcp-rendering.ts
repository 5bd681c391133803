/**
 * Frames of a stream as clients of MCP are given them: another id, and the type that MCP writes out (contract 12.3).
 */

import type { Rendered, Rendering } from '../broker/rendering.js';
import { endOfFrame } from '../core/frame-scan.js';

const LF = 0x0a;
const DOT = 0x2e;
const EVENT_LINE = Buffer.from('\nevent: message');
const ONLY_EVENT_LINE = Buffer.from('event: message');
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
    const lineEnd = frames.indexOf(LF, dot);
    const end = endOfFrame(frames, at);
    parts.push(idStart, frames.subarray(dot, lineEnd), EVENT_LINE, frames.subarray(lineEnd, end));
    at = end;
    count++;
  }
  return { frames: Buffer.concat(parts), count };
}

/** `id: <epoch>.<seq>\n…` becomes `event: message\n…`. */
function renderWithoutIds(frames: Uint8Array): Rendered {
  const parts: Uint8Array[] = [];
  let count = 0;
  for (let at = 0; at < frames.length; count++) {
    const end = endOfFrame(frames, at);
    parts.push(ONLY_EVENT_LINE, frames.subarray(frames.indexOf(LF, at), end));
    at = end;
  }
  return { frames: Buffer.concat(parts), count };
}
