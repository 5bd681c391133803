/** All streams: where each stands, and how far its slowest reader is behind. */

import { floorOf } from '../../client/stream-state.js';
import { activityView } from './activity-view.js';
import { type App, hrefOf } from './app.js';
import type { ListedStream } from './broker.js';
import { element, fill, say, setAttribute } from './element.js';
import { count, counted } from './format.js';
import { RovingFocus } from './keys.js';
import { mcpView } from './mcp-view.js';
import { poll } from './poll.js';
import { publishForm } from './publish-form.js';
import { percentOf } from './scale.js';

const LIMIT_FIRST = 100;
const LIMIT_MAX = 1000;

export function streamsView(app: App, signal: AbortSignal): HTMLElement {
  const filter = element('input', {
    type: 'search',
    placeholder: 'Name begins with',
    'aria-label': 'Show streams whose name begins with',
    'aria-keyshortcuts': '/',
    maxlength: 200,
    spellcheck: 'false',
    autocomplete: 'off',
    value: app.place.filter,
  });
  const summary = element('p', { class: 'quiet', role: 'status' });
  const body = element('tbody');
  const table = element('table', { class: 'streams' }, tableHead(), body);
  const frame = element('div', { class: 'table-frame', hidden: true }, table);
  const empty = element('div', { class: 'empty', hidden: true });
  const more = element('button', { type: 'button', class: 'plain', hidden: true }, 'Show more');
  const rows = new Map<string, Row>();
  const focus = new RovingFocus(body, 'a');
  /** To whose line the focus goes back. */
  let cameFrom = app.place.stream;
  let limit = LIMIT_FIRST;
  let asking: AbortController | null = null;

  const show = ({ streams, next }: { streams: readonly ListedStream[]; next: string | null }): void => {
    app.answered();
    const names = new Set(streams.map(({ name }) => name));
    for (const [name, row] of rows) {
      if (names.has(name)) continue;
      row.root.remove();
      rows.delete(name);
    }
    let before: HTMLElement | null = null;
    for (const stream of streams) {
      let row = rows.get(stream.name);
      if (row === undefined) {
        row = new Row(stream.name);
        rows.set(stream.name, row);
        if (before === null) body.prepend(row.root);
        else before.after(row.root);
      }
      row.update(stream);
      before = row.root;
    }
    focus.settle();
    frame.hidden = streams.length === 0;
    if (cameFrom !== null) rows.get(cameFrom)?.root.querySelector('a')?.focus();
    cameFrom = null;
    more.hidden = next === null || limit >= LIMIT_MAX;
    say(summary, summaryOf(streams, next !== null));
    showEmpty(streams.length === 0);
  };

  /** Asks anew at once, for another beginning or for more. */
  const ask = (): void => {
    asking?.abort();
    asking = new AbortController();
    const prefix = filter.value.trim();
    app.place.filter = prefix;
    const until = AbortSignal.any([signal, asking.signal]);
    void poll({
      ask: () => app.broker.list(prefix, limit),
      show,
      fail: (error) => app.failed(error),
      signal: until,
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

  filter.addEventListener('input', () => {
    limit = LIMIT_FIRST;
    ask();
  });
  filter.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') body.querySelector<HTMLElement>('a')?.focus();
    if (event.key !== 'Escape') return;
    filter.value = '';
    ask();
  });
  more.addEventListener('click', () => {
    limit = LIMIT_MAX;
    ask();
  });
  document.addEventListener('keydown', (event) => focusByKey(event, filter), { signal });
  ask();
  return element(
    'div',
    { class: 'columns' },
    element(
      'section',
      { class: 'main-column', 'aria-labelledby': 'title' },
      element(
        'div',
        { class: 'page-head' },
        element('div', {}, element('h1', { id: 'title', tabindex: -1 }, 'Streams'), summary),
        element('div', { class: 'filter' }, filter, element('kbd', { 'aria-hidden': 'true' }, '/')),
      ),
      frame,
      more,
      empty,
      mcpView(app, signal),
    ),
    activityView(app.activity, null, signal),
  );
}

function tableHead(): HTMLElement {
  const columns = ['Stream', 'Kept', 'Floor', 'Committed', 'Head', 'Readers', 'Slowest reader'];
  return element(
    'thead',
    {},
    element(
      'tr',
      {},
      ...columns.map((title, index) =>
        element('th', { scope: 'col', class: index > 1 ? 'number' : '' }, title),
      ),
    ),
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

/** A stream in the table. Its cells are made once, so that the focus stays where it is. */
class Row {
  readonly root: HTMLElement;
  readonly #kept = element('span', { class: 'mini-kept' });
  readonly #slowestMark = element('span', { class: 'mini-mark' });
  readonly #closed = element('span', { class: 'tag', hidden: true }, 'closed');
  readonly #cells: readonly HTMLElement[];
  readonly #slowest = element('td', { class: 'number' });

  constructor(name: string) {
    const link = element('a', { href: hrefOf(name), class: 'name' }, name);
    const bar = element(
      'td',
      { class: 'mini-cell' },
      element('span', { class: 'mini', 'aria-hidden': 'true' }, this.#kept, this.#slowestMark),
    );
    this.#cells = ['Floor', 'Committed', 'Head', 'Readers'].map((label) =>
      element('td', { class: 'number', 'data-label': label }),
    );
    this.#slowest.dataset['label'] = 'Slowest reader';
    this.root = element(
      'tr',
      {},
      element('th', { scope: 'row' }, link, this.#closed),
      bar,
      ...this.#cells,
      this.#slowest,
    );
  }

  update(stream: ListedStream): void {
    const { committed, head, subscribers, closed } = stream;
    const floor = floorOf(stream);
    const span = { from: 0, to: Math.max(head, 1) };
    const from = percentOf(floor - 1, span);
    this.#kept.style.left = `${from}%`;
    this.#kept.style.width = `${percentOf(head, span) - from}%`;
    [floor, committed, head, subscribers].forEach((value, index) => {
      say(this.#cells[index] as HTMLElement, count(value));
    });
    this.#closed.hidden = !closed;
    const behind = Math.max(stream.lag ?? 0, stream.ackedLag);
    this.#slowestMark.hidden = subscribers === 0 && stream.ackedLag === 0;
    this.#slowestMark.style.left = `${percentOf(committed - behind, span)}%`;
    say(this.#slowest, slowestInWords(stream, behind));
    setAttribute(this.#slowest, 'class', `number ${behind > 0 ? 'is-behind' : 'is-quiet'}`);
  }
}

function slowestInWords({ lag, ackedLag, subscribers }: ListedStream, behind: number): string {
  if (lag === null) return 'not known';
  if (behind > 0) return `${count(behind)} behind`;
  return subscribers > 0 || ackedLag > 0 ? 'up to date' : '–';
}
