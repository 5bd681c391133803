import { define } from './definition.js';
import { list, time, wholeNumber } from './kinds.js';
import { isMcpMount, splitMcpMounts } from './text-forms.js';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './units.js';

/** The front of MCP servers (contract 12). */
export const MCP_DEFINITIONS = {
  mcp: define({
    group: 'MCP',
    kind: list({
      placeholder: 'PATH=SERVER',
      expected:
        'a path, = and the URL of an MCP server (/mcp=http://127.0.0.1:3000/mcp; user:password@ may stand before the ' +
        'host), or stdio: and its command',
      isValid: isMcpMount,
      itemsMax: 100,
      split: splitMcpMounts,
    }),
    default: [],
    doc: 'MCP servers to put resumable streams in front of, and the path of each.',
  }),
  mcpTtlMs: define({
    group: 'MCP',
    kind: time({ min: SECOND_MS, max: 7 * DAY_MS }),
    default: 10 * MINUTE_MS,
    doc: 'Time for which the answer to a call is kept once it has come, and nobody reads it.',
  }),
  mcpSessionTtlMs: define({
    group: 'MCP',
    kind: time({ min: SECOND_MS, max: 30 * DAY_MS }),
    default: HOUR_MS,
    doc: 'Time after which a session ends that nobody uses.',
  }),
  mcpSilenceMs: define({
    group: 'MCP',
    kind: time({ min: 10, max: DAY_MS }),
    default: 10 * MINUTE_MS,
    doc: 'Time without a byte of the server after which a call is answered with an error; over HTTP, to within a second.',
  }),
  mcpWaitMs: define({
    group: 'MCP',
    kind: time({ min: 10, max: HOUR_MS }),
    default: 10 * SECOND_MS,
    doc: 'Time for which messages of a server wait for memory, or for the log, before their call is ended.',
  }),
  mcpResponseGraceMs: define({
    group: 'MCP',
    kind: time({ min: 0, max: DAY_MS }),
    default: 0,
    doc: 'Time for which a call of MCP 2026-07-28 goes on, and its answer is kept, when its client has hung up. 0: hanging up cancels it, as that revision has it.',
  }),
  mcpSessionsMax: define({
    group: 'MCP',
    kind: wholeNumber({ min: 1, max: 100_000, unit: 'sessions' }),
    default: 1000,
    doc: 'Sessions open at a time, over all servers; and calls that `mcpResponseGraceMs` keeps.',
  }),
  mcpCallsMax: define({
    group: 'MCP',
    kind: wholeNumber({ min: 1, max: 10_000, unit: 'calls' }),
    default: 100,
    doc: 'Calls of one session that wait for their answer at a time, and answers of it that are kept.',
  }),
};
