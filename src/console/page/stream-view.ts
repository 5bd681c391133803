/** One stream: where it stands, who reads it, its events as they come, and a form to publish one. */

import { GaplessError } from '../../client/client.js';
import { floorOf } from '../../client/stream-state.js';
import { activityView } from './activity-view.js';
import type { App } from './app.js';
import type { ReadStream } from './broker.js';
import { card } from './card.js';
import { element, fill, say } from './element.js';
import { eventFeed } from './event-feed.js';
import { byteSize, count, duration, retentionInWords } from './format.js';
import { poll } from './poll.js';
import { PositionBar } from './position-bar.js';
import { publishForm } from './publish-form.js';
import { ReaderTable } from './reader-table.js';

const NO_STREAM = ['stream_not_found', 'invalid_stream_name'];

export function streamView(name: string): (app: App, signal: AbortSignal) => HTMLElement {
  return (app, signal) => {
    app.place.stream = name;
    const closed = element('span', { class: 'tag', hidden: true }, 'closed');
    const about = element('p', { class: 'quiet' });
    const figures = new Figures();
    const bar = new PositionBar();
    const readers = new ReaderTable();
    const events = element('div');
    const content = element('div', { class: 'columns', hidden: true });
    const missing = element('div', { class: 'empty', hidden: true });
    /** Of the stream whose events are followed. */
    let epoch: string | null = null;
    let following: AbortController | null = null;

    const show = (stream: ReadStream): void => {
      app.answered();
      content.hidden = false;
      missing.hidden = true;
      closed.hidden = !stream.closed;
      say(about, aboutInWords(stream));
      figures.update(stream);
      bar.update(stream);
      readers.update(stream);
      if (stream.epoch === epoch) return;
      // Another stream of this name: its events are others.
      epoch = stream.epoch;
      following?.abort();
      following = new AbortController();
      fill(events, eventFeed(app, stream, AbortSignal.any([signal, following.signal])));
    };
    const fail = (error: unknown): boolean => {
      if (!(error instanceof GaplessError) || !NO_STREAM.includes(error.code)) return app.failed(error);
      app.answered();
      missing.hidden = false;
      fill(missing, ...missingStream(epoch !== null));
      return error.code === 'stream_not_found';
    };
    document.addEventListener('keydown', leaveByKey, { signal });
    void poll({ ask: () => app.broker.readers(name), show, fail, signal });
    content.append(
      element('div', { class: 'main-column' }, figures.root, bar.root, events),
      element(
        'div',
        { class: 'side-column' },
        card({ name: 'publish', title: 'Publish a test event' }, publishForm(app, name)),
        readers.root,
        activityView(app.activity, name, signal),
      ),
    );
    return element('div', { class: 'stream' }, pageHead(name, closed, about), missing, content);
  };
}

/** @param closed the mark of a stream that is. @param about says what kind of stream it is. */
function pageHead(name: string, closed: HTMLElement, about: HTMLElement): HTMLElement {
  const title = element('h1', { id: 'title', class: 'name', tabindex: -1 }, name);
  return element(
    'div',
    { class: 'page-head' },
    element(
      'div',
      {},
      element('nav', { 'aria-label': 'Where this is' }, element('a', { href: '#/' }, 'Streams')),
      element('div', { class: 'title-line' }, title, closed),
      about,
    ),
  );
}

function missingStream(wasThere: boolean): HTMLElement[] {
  return [
    element('h2', {}, wasThere ? 'The stream was deleted' : 'There is no such stream'),
    element('p', { class: 'quiet' }, 'It is shown here as soon as somebody makes it.'),
    element('p', {}, element('a', { href: '#/' }, 'All streams')),
  ];
}

/** Escape goes back to the list, unless there is something to lose. */
function leaveByKey(event: KeyboardEvent): void {
  if (event.key !== 'Escape' || event.defaultPrevented) return;
  const { target } = event;
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLInputElement) target.blur();
  else location.hash = '#/';
}

function aboutInWords({ epoch, logFloor, overflow, retention, ttlMs }: ReadStream): string {
  return [
    `Epoch ${epoch}`,
    `keeps ${retentionInWords(retention)}`,
    logFloor === null ? 'in memory' : 'in the durable log',
    overflow === 'reject' ? 'refuses publishers when it is full' : '',
    ttlMs > 0 ? `is deleted when nobody has used it for ${duration(ttlMs)}` : '',
  ]
    .filter((part) => part !== '')
    .join(' · ');
}

class Figures {
  readonly root: HTMLElement;
  readonly #values: readonly HTMLElement[];

  constructor() {
    const labels = ['Floor', 'Committed', 'Head', 'Kept', 'In memory', 'Readers'];
    this.#values = labels.map(() => element('dd'));
    this.root = element(
      'dl',
      { class: 'figures' },
      ...labels.map((label, index) =>
        element('div', {}, element('dt', {}, label), this.#values[index] as HTMLElement),
      ),
    );
  }

  update(stream: ReadStream): void {
    const floor = floorOf(stream);
    const { bytes, committed, head, readers } = stream;
    const texts = [
      count(floor),
      count(committed),
      count(head),
      count(Math.max(0, head - floor + 1)),
      byteSize(bytes),
      count(readers.total),
    ];
    texts.forEach((text, index) => {
      say(this.#values[index] as HTMLElement, text);
    });
  }
}
