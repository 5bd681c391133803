/** Who reads a stream: named subscribers, then connections, those that are alike on one line. */

import type { NamedSubscriber, Reader, ReadStream } from './broker.js';
import { card } from './card.js';
import { element, fill, say } from './element.js';
import { count, counted } from './format.js';
import { tableHead } from './table.js';

const BY: Readonly<Record<string, string>> = {
  sse: 'Event stream',
  'sse-many': 'Event stream of several',
  websocket: 'WebSocket',
};
const STATES: Readonly<Record<string, string>> = {
  ready: 'ready',
  stalled: 'stalled',
  waiting: 'reads the log',
};
const COLUMNS = ['Reader', 'State', 'Sent', 'Behind'];
/** More lines than this nobody reads; the slowest are here. */
const SHOWN_MAX = 12;

export class ReaderTable {
  readonly root: HTMLElement;
  readonly #body = element('tbody');
  readonly #frame: HTMLElement;
  readonly #note = element('p', { class: 'quiet' });

  constructor() {
    const table = element('table', { class: 'readers' }, tableHead(COLUMNS, 2), this.#body);
    this.#frame = element('div', { class: 'table-frame is-plain' }, table);
    this.root = card({ name: 'readers', title: 'Readers' }, this.#frame, this.#note);
  }

  update({ committed, named, readers }: ReadStream): void {
    const groups = alike(readers.slowest).slice(0, SHOWN_MAX);
    const connected = groups.reduce((sum, group) => sum + group.length, 0);
    const lines = [
      ...named.slice(0, SHOWN_MAX).map((subscriber) => namedLine(subscriber)),
      ...groups.map((group) => readersLine(group, committed)),
    ];
    fill(this.#body, ...lines);
    this.#frame.hidden = lines.length === 0;
    say(this.#note, noteOf(readers, connected, Math.max(0, named.length - SHOWN_MAX)));
  }
}

function noteOf({ total, complete }: ReadStream['readers'], shown: number, namedBeside: number): string {
  const beside = total - shown;
  return [
    total === 0 ? 'Nobody is connected.' : '',
    beside > 0 ? `${counted(beside, 'more connection')}, none of them further behind.` : '',
    namedBeside > 0 ? `${counted(namedBeside, 'more named subscriber')}.` : '',
    complete ? '' : 'A thread of the broker was too busy to say who reads there.',
    total > 0 && beside <= 0 ? 'This page is one of them while it shows events.' : '',
  ]
    .filter((part) => part !== '')
    .join(' ');
}

/** Readers that stand at one place, and are of one kind and of one principal, in the order of the first of them. */
function alike(readers: readonly Reader[]): Reader[][] {
  const groups = new Map<string, Reader[]>();
  for (const reader of readers) {
    const key = JSON.stringify([reader.delivered, reader.state, reader.by, reader.principal]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [reader]);
    else group.push(reader);
  }
  return [...groups.values()];
}

function readersLine(group: readonly Reader[], committed: number): HTMLElement {
  const { by, delivered, principal, state } = group[0] as Reader;
  const kind = BY[by] ?? by;
  const times = group.length > 1 ? ` × ${count(group.length)}` : '';
  return line({
    name: principal === '' ? kind + times : principal,
    beside: principal === '' ? '' : kind + times,
    state: STATES[state] ?? state,
    kind: state,
    seq: count(delivered),
    behind: Math.max(0, committed - delivered),
  });
}

function namedLine({ name, acked, lag }: NamedSubscriber): HTMLElement {
  return line({
    name,
    beside: 'named subscriber',
    state: lag === null ? 'of an earlier stream' : 'acknowledged',
    kind: 'named',
    seq: lag === null ? '–' : count(Number(acked.slice(acked.indexOf('.') + 1))),
    behind: lag ?? 0,
  });
}

interface Line {
  readonly name: string;
  readonly beside: string;
  readonly state: string;
  readonly kind: string;
  readonly seq: string;
  readonly behind: number;
}

function line({ name, beside, state, kind, seq, behind }: Line): HTMLElement {
  return element(
    'tr',
    {},
    element(
      'th',
      { scope: 'row' },
      element('span', { class: beside === '' ? 'kind' : 'name' }, name),
      beside === '' ? null : element('span', { class: 'quiet' }, beside),
    ),
    element('td', {}, element('span', { class: `state is-${kind}` }, state)),
    element('td', { class: 'number' }, seq),
    element(
      'td',
      { class: `number ${behind > 0 ? 'is-behind' : 'is-quiet'}` },
      behind > 0 ? count(behind) : '0',
    ),
  );
}
