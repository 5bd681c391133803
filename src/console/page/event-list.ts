/** The newest events of a stream, as they are painted: bounded, and at most once a frame, however fast they come. */

import type { StreamEvent } from '../../client/client.js';
import { element, fill, say } from './element.js';
import { byteSize, counted } from './format.js';
import { RovingFocus } from './keys.js';

export type EventData = string | Uint8Array;

const SHOWN_MAX = 200;
/** Of the data on one line, and of what is opened: an event may be a megabyte. */
const LINE_LENGTH_MAX = 300;
const OPEN_LENGTH_MAX = 65_536;

export class EventList {
  readonly root = element('div', { class: 'events' });
  readonly #list = element('ol', { class: 'event-list' });
  readonly #empty = element('p', { class: 'quiet' }, 'No events yet. What is published appears here.');
  readonly #focus: RovingFocus;
  /** What waits to be painted, the newest last. */
  #pending: HTMLElement[] = [];
  #isScheduled = false;
  #isPaused = false;
  #onPending: (count: number) => void = () => undefined;
  #waiting = 0;

  constructor() {
    this.root.append(this.#empty, this.#list);
    this.#focus = new RovingFocus(this.#list, 'summary');
  }

  /** Told how many events wait while the list is paused. */
  onPending(told: (count: number) => void): void {
    this.#onPending = told;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  set isPaused(isPaused: boolean) {
    this.#isPaused = isPaused;
    this.#waiting = 0;
    this.#onPending(0);
    this.#schedule();
  }

  addEvent(event: StreamEvent<EventData>): void {
    this.#add(eventItem(event));
  }

  /** A line between events that says what became of the stream. */
  addNote(text: string, tone: 'refused' | 'neutral'): void {
    this.#add(element('li', { class: `event-note is-${tone}` }, text));
  }

  #add(item: HTMLElement): void {
    this.#pending.push(item);
    if (this.#pending.length > 2 * SHOWN_MAX) this.#pending = this.#pending.slice(-SHOWN_MAX);
    if (this.#isPaused) this.#onPending(++this.#waiting);
    else this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isPaused || this.#pending.length === 0) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      if (!this.#isPaused) this.#paint();
    });
  }

  #paint(): void {
    const newest = this.#pending.slice(-SHOWN_MAX).reverse();
    this.#pending = [];
    this.#list.prepend(...newest);
    while (this.#list.childElementCount > SHOWN_MAX) this.#list.lastElementChild?.remove();
    this.#empty.hidden = this.#list.childElementCount > 0;
    this.#focus.settle();
  }
}

function eventItem({ id, type, data }: StreamEvent<EventData>): HTMLElement {
  const seq = id.slice(id.indexOf('.') + 1);
  const line =
    typeof data === 'string' ? data.slice(0, LINE_LENGTH_MAX) : `${byteSize(data.length)} of binary data`;
  const body = element('div', { class: 'event-body' });
  const details = element(
    'details',
    {},
    element(
      'summary',
      {},
      element('span', { class: 'seq' }, seq),
      type === 'message' ? null : element('span', { class: 'tag' }, type),
      element('span', { class: 'data' }, line),
    ),
    body,
  );
  details.addEventListener('toggle', () => {
    if (details.open) openEvent(body, { id, type, data });
  });
  return element('li', {}, details);
}

/** Made when it is opened: most never are. */
function openEvent(body: HTMLElement, { id, type, data }: StreamEvent<EventData>): void {
  const note = element('p', { class: 'quiet' });
  const size = typeof data === 'string' ? counted(data.length, 'character') : byteSize(data.length);
  say(note, `${type}, ${size}`);
  const text = typeof data === 'string' ? readable(data) : hexOf(data);
  const cut = text.length > OPEN_LENGTH_MAX;
  fill(
    body,
    element('p', { class: 'facts' }, element('code', {}, id)),
    note,
    element('pre', { tabindex: 0 }, text.slice(0, OPEN_LENGTH_MAX)),
    cut ? element('p', { class: 'quiet' }, 'Only its beginning is shown.') : null,
  );
}

/** JSON with its structure shown, or the text as it is. */
function readable(data: string): string {
  if (!/^\s*[[{]/.test(data)) return data;
  try {
    return JSON.stringify(JSON.parse(data), null, 2);
  } catch {
    return data;
  }
}

function hexOf(data: Uint8Array): string {
  const shown = data.subarray(0, OPEN_LENGTH_MAX / 3);
  return Array.from(shown, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}
