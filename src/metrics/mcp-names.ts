/** The metrics of the front of the MCP servers, one sentence each. */

import { FrontCount } from '../mcp/front-counts.js';

export const MCP_METRICS = [
  { name: 'gapless_mcp_sessions', help: 'Sessions of MCP clients.', count: FrontCount.sessions },
  {
    name: 'gapless_mcp_sessions_begun_total',
    help: 'Sessions that a server has agreed to.',
    count: FrontCount.sessionsBegun,
  },
  {
    name: 'gapless_mcp_calls_under_way',
    help: 'Requests of MCP clients, batches counted once, that wait for an answer.',
    count: FrontCount.callsUnderWay,
  },
  {
    name: 'gapless_mcp_calls_total',
    help: 'Requests of MCP clients that were sent to a server, batches counted once.',
    count: FrontCount.calls,
  },
  {
    name: 'gapless_mcp_messages_total',
    help: 'Messages for MCP clients that were appended to a stream.',
    count: FrontCount.messages,
  },
  {
    name: 'gapless_mcp_takeovers_total',
    help: 'Readers of a stream that gave way to a newer connection.',
    count: FrontCount.takeovers,
  },
  {
    name: 'gapless_mcp_renewals_total',
    help: 'Sessions that a server had forgotten and that were begun anew with it.',
    count: FrontCount.renewals,
  },
  {
    name: 'gapless_mcp_sessions_refused_total',
    help: 'Sessions refused because there were as many as may be.',
    count: FrontCount.refusedSessions,
  },
  {
    name: 'gapless_mcp_calls_refused_total',
    help: 'Requests refused because as many of the session were under way as may be.',
    count: FrontCount.refusedCalls,
  },
  {
    name: 'gapless_mcp_waiting_characters',
    help: 'Characters of messages for MCP clients that wait for memory, or for the log.',
    count: FrontCount.waitingCharacters,
  },
  {
    name: 'gapless_mcp_sse_missed_total',
    help: 'Clients of HTTP+SSE that came back and could not be given all that they had missed, so that their calls ended.',
    count: FrontCount.missed,
  },
  {
    name: 'gapless_mcp_sessions_restored_total',
    help: 'Sessions that another process began: taken up from the data directory at the start, or met in a shared log.',
    count: FrontCount.restored,
  },
  {
    name: 'gapless_mcp_resumes_refused_total',
    help: 'Clients of MCP that came back to messages that are gone, or were overtaken.',
    count: FrontCount.refusedResumes,
  },
] as const;

export const MCP_FAILURES = {
  name: 'gapless_mcp_calls_failed_total',
  help: 'Requests that the front answered with an error, because of the server or the end of the session, by reason.',
} as const;
