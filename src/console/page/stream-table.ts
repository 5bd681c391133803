/** The table of streams, a line for each. */

import { floorOf } from '../../client/stream-state.js';
import { hrefOf } from './app.js';
import type { ListedStream } from './broker.js';
import { element, say, setAttribute } from './element.js';
import { count } from './format.js';
import { RovingFocus } from './keys.js';
import { percentOf } from './scale.js';
import { tableHead } from './table.js';

const COLUMNS = ['Stream', 'Kept', 'Floor', 'Committed', 'Head', 'Readers', 'Slowest reader'];

export class StreamTable {
  readonly root: HTMLElement;
  readonly #body = element('tbody');
  readonly #rows = new Map<string, Row>();
  readonly #focus = new RovingFocus(this.#body, 'a');

  constructor() {
    const table = element('table', { class: 'streams' }, tableHead(COLUMNS, 2), this.#body);
    this.root = element('div', { class: 'table-frame', hidden: true }, table);
  }

  /** @param streams all that are to be shown, in their order. */
  update(streams: readonly ListedStream[]): void {
    const names = new Set(streams.map(({ name }) => name));
    for (const [name, row] of this.#rows) {
      if (names.has(name)) continue;
      row.root.remove();
      this.#rows.delete(name);
    }
    let before: HTMLElement | null = null;
    for (const stream of streams) {
      const row: Row = this.#rows.get(stream.name) ?? this.#insert(stream.name, before);
      row.update(stream);
      before = row.root;
    }
    this.#focus.settle();
    this.root.hidden = streams.length === 0;
  }

  /** Puts the focus on a stream, if it is there. @param name null: on the first. */
  focus(name: string | null): void {
    const place = name === null ? this.#body : this.#rows.get(name)?.root;
    place?.querySelector('a')?.focus();
  }

  #insert(name: string, before: HTMLElement | null): Row {
    const row = new Row(name);
    this.#rows.set(name, row);
    if (before === null) this.#body.prepend(row.root);
    else before.after(row.root);
    return row;
  }
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
