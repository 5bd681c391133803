/** All streams: where each stands, and how far its slowest reader is behind. */

import { activityView } from './activity-view.js';
import type { App } from './app.js';
import type { ListedStream } from './broker.js';
import { element, fill, say } from './element.js';
import { count, counted } from './format.js';
import { mcpView } from './mcp-view.js';
import { poll } from './poll.js';
import { publishForm } from './publish-form.js';
import { StreamTable } from './stream-table.js';

const LIMIT_FIRST = 100;
const LIMIT_MAX = 1000;

export function streamsView(app: App, signal: AbortSignal): HTMLElement {
  const filter = filterInput(app.place.filter);
  const summary = element('p', { class: 'quiet', role: 'status' });
  const table = new StreamTable();
  const empty = element('div', { class: 'empty', hidden: true });
  const more = element('button', { type: 'button', class: 'plain', hidden: true }, 'Show more');
  /** To whose line the focus goes back. */
  let cameFrom = app.place.stream;
  let limit = LIMIT_FIRST;
  let asking: AbortController | null = null;

  const show = ({ streams, next }: { streams: readonly ListedStream[]; next: string | null }): void => {
    app.answered();
    table.update(streams);
    if (cameFrom !== null) table.focus(cameFrom);
    cameFrom = null;
    more.hidden = next === null || limit >= LIMIT_MAX;
    say(summary, summaryOf(streams, next !== null));
    showEmpty(streams.length === 0);
  };

  /** Asks anew at once, for another beginning or for more. */
  const ask = (limitNow: number): void => {
    limit = limitNow;
    asking?.abort();
    asking = new AbortController();
    const prefix = filter.value.trim();
    app.place.filter = prefix;
    void poll({
      ask: () => app.broker.list(prefix, limit),
      show,
      fail: (error) => app.failed(error),
      signal: AbortSignal.any([signal, asking.signal]),
    });
  };

  const showEmpty = (isEmpty: boolean): void => {
    const kind = !isEmpty ? '' : filter.value.trim() === '' ? 'first' : 'filter';
    if (empty.dataset['kind'] === kind) return;
    empty.dataset['kind'] = kind;
    empty.hidden = !isEmpty;
    if (kind === 'filter') fill(empty, element('p', {}, 'No stream has a name that begins so.'));
    if (kind === 'first') fill(empty, ...firstStream(app));
  };

  filter.addEventListener('input', () => ask(LIMIT_FIRST));
  filter.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') table.focus(null);
    if (event.key !== 'Escape') return;
    filter.value = '';
    ask(limit);
  });
  more.addEventListener('click', () => ask(LIMIT_MAX));
  document.addEventListener('keydown', (event) => focusByKey(event, filter), { signal });
  ask(LIMIT_FIRST);
  return element(
    'div',
    { class: 'columns' },
    element(
      'section',
      { class: 'main-column', 'aria-labelledby': 'title' },
      pageHead(summary, filter),
      table.root,
      more,
      empty,
      mcpView(app, signal),
    ),
    activityView(app.activity, null, signal),
  );
}

function filterInput(value: string): HTMLInputElement {
  return element('input', {
    type: 'search',
    placeholder: 'Name begins with',
    'aria-label': 'Show streams whose name begins with',
    'aria-keyshortcuts': '/',
    maxlength: 200,
    spellcheck: 'false',
    autocomplete: 'off',
    value,
  });
}

function pageHead(summary: HTMLElement, filter: HTMLElement): HTMLElement {
  return element(
    'div',
    { class: 'page-head' },
    element('div', {}, element('h1', { id: 'title', tabindex: -1 }, 'Streams'), summary),
    element('div', { class: 'filter' }, filter, element('kbd', { 'aria-hidden': 'true' }, '/')),
  );
}

function summaryOf(streams: readonly ListedStream[], isPart: boolean): string {
  const readers = streams.reduce((sum, { subscribers }) => sum + subscribers, 0);
  const shown = isPart ? `The first ${count(streams.length)} streams` : counted(streams.length, 'stream');
  return `${shown}, ${counted(readers, 'reader')}`;
}

function focusByKey(event: KeyboardEvent, filter: HTMLInputElement): void {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  filter.focus();
}

function firstStream(app: App): HTMLElement[] {
  return [
    element('h2', {}, 'No streams yet'),
    element(
      'p',
      { class: 'quiet' },
      'A stream is there as soon as somebody publishes to it or follows it. Publish the first event:',
    ),
    publishForm(app, null),
  ];
}
