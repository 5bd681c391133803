/** An event as an `EventSource` dispatches it. */
export interface DispatchedEvent {
  readonly type: string;
  readonly data: string;
  readonly lastEventId: string;
}

/** What an `EventSource` has after reading a whole stream. */
export interface EventStream {
  readonly events: readonly DispatchedEvent[];
  readonly lastEventId: string;
  readonly retryMs: number | null;
}

/**
 * Reads an event stream as the WHATWG text says ("Parsing an event stream", "Interpreting an event stream"), and knows
 * nothing of who wrote it: the judge of what we send.
 */
export function readEventStream(bytes: Uint8Array): EventStream {
  const text = new TextDecoder('utf-8').decode(bytes);
  const lines = text.split(/\r\n|\n|\r/);
  lines.pop(); // What follows the last line break is an incomplete line.

  const events: DispatchedEvent[] = [];
  let data = '';
  let type = '';
  let idBuffer = '';
  let lastEventId = '';
  let retryMs: number | null = null;

  for (const line of lines) {
    if (line === '') {
      lastEventId = idBuffer;
      if (data !== '')
        events.push({ type: type === '' ? 'message' : type, data: data.slice(0, -1), lastEventId });
      data = '';
      type = '';
      continue;
    }
    const colon = line.indexOf(':');
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') type = value;
    else if (field === 'data') data += `${value}\n`;
    else if (field === 'id' && !value.includes('\0')) idBuffer = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) retryMs = Number(value);
  }
  return { events, lastEventId, retryMs };
}
