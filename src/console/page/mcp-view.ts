/** The MCP servers behind the front, and who uses them. Nothing where there are none. */

import type { App } from './app.js';
import type { McpServer } from './broker.js';
import { card } from './card.js';
import { element, fill } from './element.js';
import { count } from './format.js';
import { poll } from './poll.js';
import { tableHead } from './table.js';

const COLUMNS = ['Server', 'Sessions', 'Calls under way', 'Readers', 'Refused resumes'];

export function mcpView(app: App, signal: AbortSignal): HTMLElement {
  const body = element('tbody');
  const table = element('table', {}, tableHead(COLUMNS, 1), body);
  const root = card(
    { name: 'mcp', title: 'MCP servers' },
    element('div', { class: 'table-frame is-plain' }, table),
  );
  root.classList.add('mcp');
  root.hidden = true;
  // Which servers there are changes with a restart only.
  const none = new AbortController();
  void poll({
    ask: () => app.broker.mcpServers(),
    show: (servers) => {
      app.answered();
      if (servers.length === 0) none.abort();
      fill(body, ...servers.map(rowOf));
      root.hidden = servers.length === 0;
    },
    fail: (error) => app.failed(error),
    signal: AbortSignal.any([signal, none.signal]),
  });
  return root;
}

function rowOf({ path, sessions, calls, readers, refusedResumes }: McpServer): HTMLElement {
  const counts = [sessions, calls, readers, refusedResumes];
  return element(
    'tr',
    {},
    element('th', { scope: 'row', class: 'name' }, path),
    ...counts.map((value) => element('td', { class: 'number' }, count(value))),
  );
}
