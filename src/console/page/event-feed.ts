/** Follows a stream by `gapless/client` and lists what comes, with what else becomes of the stream. */

import { ResumeUnavailableError, StreamDeletedError, type SubscriptionStatus } from '../../client/client.js';
import { floorOf } from '../../client/stream-state.js';
import type { App } from './app.js';
import type { ReadStream } from './broker.js';
import { card } from './card.js';
import { element, fill, say, setAttribute } from './element.js';
import { type EventData, EventList } from './event-list.js';
import { count, counted } from './format.js';

/** Events of before that are shown at first. */
const BACKLOG = 50;

const FORBIDDEN = 'This token may not read the events of this stream. It needs the right to subscribe to it.';

export function eventFeed(app: App, at: ReadStream, signal: AbortSignal): HTMLElement {
  const list = new EventList();
  const status = element('span', { class: 'quiet', role: 'status' });
  const pause = element('button', { type: 'button', class: 'plain', 'aria-pressed': 'false' }, 'Pause');
  const waiting = element('span', { class: 'quiet' });
  pause.addEventListener('click', () => {
    list.isPaused = !list.isPaused;
    setAttribute(pause, 'aria-pressed', String(list.isPaused));
    say(pause, list.isPaused ? 'Go on' : 'Pause');
  });
  list.onPending((pending) => say(waiting, pending === 0 ? '' : `${counted(pending, 'new event')}`));
  const atEnd = element('span', { class: 'card-end' }, waiting, pause);
  const root = card({ name: 'events', title: 'Events', beside: [status, atEnd] }, list.root);
  void follow(app, at, { list, status, signal }).catch((error: unknown) => {
    if (signal.aborted) return;
    pause.hidden = true;
    say(status, '');
    if (app.isForbidden(error)) fill(list.root, element('p', { class: 'quiet' }, FORBIDDEN));
    else if (app.failed(error)) list.addNote((error as Error).message, 'refused');
  });
  return root;
}

interface Feed {
  readonly list: EventList;
  readonly status: HTMLElement;
  readonly signal: AbortSignal;
}

/** Resolves at the end of the stream. */
async function follow(app: App, at: ReadStream, { list, status, signal }: Feed): Promise<void> {
  const { committed, epoch, name } = at;
  let cursor = `${epoch}.${Math.max(floorOf(at) - 1, committed - BACKLOG, 0)}`;
  for (;;) {
    const decode = ({ data }: { data: EventData }): EventData => data;
    const onStatus = (now: SubscriptionStatus): void => say(status, statusInWords(now));
    try {
      for await (const event of app.broker.client.subscribe<EventData>(name, {
        cursor,
        decode,
        signal,
        onStatus,
      })) {
        list.addEvent(event);
      }
      say(status, 'closed');
      list.addNote('The stream was closed here. Nothing more can be published to it.', 'neutral');
      return;
    } catch (error) {
      if (error instanceof StreamDeletedError) {
        say(status, 'deleted');
        list.addNote('The stream was deleted.', 'refused');
        return;
      }
      if (!(error instanceof ResumeUnavailableError) || error.earliest === null) throw error;
      list.addNote(lossInWords(error), 'refused');
      cursor = error.earliest;
    }
  }
}

function statusInWords(status: SubscriptionStatus): string {
  switch (status.state) {
    case 'connecting':
      return 'connecting';
    case 'open':
      return 'live';
    case 'waiting':
      return 'broken off, coming back';
  }
}

function lossInWords({ reason, floor }: ResumeUnavailableError): string {
  if (reason === 'evicted')
    return `Events before ${count(floor ?? 0)} were evicted before they could be shown.`;
  return 'The stream was made anew. What follows is of the new one.';
}
