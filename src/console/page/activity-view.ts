/** The list of what happened lately: resumes and refusals, the newest first. */

import type { Happening } from '../../wire/happening.js';
import type { ActivityStore } from './activity-store.js';
import { hrefOf } from './app.js';
import { card } from './card.js';
import { element, fill, say } from './element.js';
import { clockTime, counted } from './format.js';
import { wordsOf } from './happening-words.js';

const SHOWN_MAX = 60;
/** What a broker takes for the name of a stream (contract 2.4): others came in requests that it refused. */
const STREAM_NAME = /^[A-Za-z0-9._~:-]{1,200}$/;

/** @param stream the one that it is about; null: all. */
export function activityView(store: ActivityStore, stream: string | null, signal: AbortSignal): HTMLElement {
  const list = element('ol', { class: 'activity-list', tabindex: 0, 'aria-labelledby': 'activity-title' });
  const note = element('p', { class: 'quiet' });
  const refusalsOnly = element('input', { type: 'checkbox' });
  const items = new Map<number, HTMLElement>();

  const show = (): void => {
    const found = store.happenings.filter(
      (happening) =>
        (stream === null || happening.stream === stream) &&
        (!refusalsOnly.checked || wordsOf(happening).tone === 'refused'),
    );
    const shown = found.slice(0, SHOWN_MAX);
    const numbers = new Set(shown.map(({ number }) => number));
    for (const number of items.keys()) if (!numbers.has(number)) items.delete(number);
    for (const happening of shown) {
      if (!items.has(happening.number)) items.set(happening.number, itemOf(happening, stream === null));
    }
    fill(list, ...shown.map(({ number }) => items.get(number) ?? null));
    say(note, noteOf(shown.length, refusalsOnly.checked, store.missed));
  };
  refusalsOnly.addEventListener('change', show);
  const filter = element('label', { class: 'check' }, refusalsOnly, 'Refusals only');
  const root = card({ name: 'activity', title: 'Resumes and refusals', beside: [filter] }, list, note);
  store.onChange(show, signal);
  return root;
}

function noteOf(shown: number, refusalsOnly: boolean, missed: number): string {
  const what = refusalsOnly
    ? 'Nobody has been refused lately.'
    : 'Nobody has come back or been refused lately.';
  const beside = missed > 0 ? `${counted(missed, 'more')} came too fast to be shown.` : '';
  return [shown === 0 ? what : '', beside].filter((part) => part !== '').join(' ');
}

function itemOf(happening: Happening, withStream: boolean): HTMLElement {
  const { at, cursor, principal, request, stream } = happening;
  const { title, text, tone } = wordsOf(happening);
  const facts = [cursor, principal, request].filter((fact) => fact !== undefined && fact !== '');
  const name = STREAM_NAME.test(stream)
    ? element('a', { href: hrefOf(stream), class: 'name' }, stream)
    : element('span', { class: 'name' }, stream);
  return element(
    'li',
    { class: `happening is-${tone}` },
    element('time', { datetime: new Date(at).toISOString() }, clockTime(at)),
    element(
      'div',
      { class: 'happening-body' },
      element(
        'p',
        {},
        element('strong', {}, title),
        withStream && stream !== '' ? ' ' : null,
        withStream && stream !== '' ? name : null,
      ),
      element('p', { class: 'quiet' }, text),
      facts.length === 0 ? null : element('p', { class: 'facts' }, facts.join('  ')),
    ),
  );
}
