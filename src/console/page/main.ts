/** The console's page: who is signed in, which view is shown, and what is said when the broker does not answer. */

import { GaplessError } from '../../client/client.js';
import { ActivityStore } from './activity-store.js';
import type { App, View } from './app.js';
import { Broker } from './broker.js';
import { element, fill, say } from './element.js';
import { tokenFault } from './happening-words.js';
import { loginView } from './login-view.js';
import { streamView } from './stream-view.js';
import { streamsView } from './streams-view.js';

/** Of the tab alone, and gone with it. */
const TOKEN_KEY = 'gapless.console.token';

const content = partOf('content');
const notice = partOf('notice');
const sessionPart = partOf('session');

let token = sessionStorage.getItem(TOKEN_KEY);
/** Ends what runs for who is signed in, and for the view that is shown. */
let session = new AbortController();
let view = new AbortController();

function partOf(id: string): HTMLElement {
  return document.getElementById(id) as HTMLElement;
}

function begin(): void {
  session.abort();
  session = new AbortController();
  const activity = new ActivityStore();
  const place = { filter: '', stream: null };
  const app: App = { broker: new Broker(token), activity, place, answered, failed, isForbidden };
  void activity.follow(app.broker, failed, session.signal);
  const signOut = element('button', { type: 'button', class: 'plain' }, 'Sign out');
  signOut.addEventListener('click', () => {
    forget();
    askForToken('');
  });
  fill(sessionPart, token === null ? null : signOut);
  const show = (): void => showView(app);
  window.addEventListener('hashchange', show, { signal: session.signal });
  show();
}

function showView(app: App): void {
  view.abort();
  view = new AbortController();
  const before = document.querySelector('h1')?.textContent ?? '';
  const [made, title] = viewOf(location.hash);
  document.title = `${title} · Gapless`;
  fill(content, made(app, AbortSignal.any([view.signal, session.signal])));
  focusOn(before);
}

function viewOf(hash: string): [View, string] {
  const [, stream] = /^#\/streams\/(.+)$/.exec(hash) ?? [];
  if (stream === undefined) return [streamsView, 'Streams'];
  const name = decoded(stream);
  return [streamView(name), name];
}

/** A name needs no encoding; browsers encode what is none. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Whoever goes to another view with the keyboard is at its beginning, and not at the page's. */
function focusOn(before: string): void {
  if (before !== '') partOf('title').focus({ preventScroll: true });
}

function answered(): void {
  if (notice.textContent !== '') fill(notice);
}

function failed(error: unknown): boolean {
  if (!(error instanceof GaplessError)) throw error;
  if (error.status === 401 || error.status === 403) {
    askForToken(token === null ? '' : reasonOf(error));
    return false;
  }
  const text =
    error.code === 'unreachable'
      ? 'The broker does not answer. Trying again.'
      : `The broker says: ${error.message}.`;
  say(notice, text);
  return true;
}

function isForbidden(error: unknown): boolean {
  return error instanceof GaplessError && error.status === 403;
}

function askForToken(why: string): void {
  session.abort();
  view.abort();
  fill(notice);
  fill(sessionPart);
  document.title = 'Sign in · Gapless';
  fill(content, loginView(why, signIn));
  partOf('token').focus();
}

async function signIn(given: string): Promise<string> {
  try {
    await new Broker(given).list('', 1);
  } catch (error) {
    if (!(error instanceof GaplessError)) throw error;
    return reasonOf(error);
  }
  token = given;
  sessionStorage.setItem(TOKEN_KEY, given);
  begin();
  return '';
}

function forget(): void {
  token = null;
  sessionStorage.removeItem(TOKEN_KEY);
}

function reasonOf(error: GaplessError): string {
  if (error.status === 403) return 'This token is good, and does not give the right to administer.';
  if (error.status !== 401) return error.message;
  const fault = tokenFault(error.problem['reason']);
  return `${fault.charAt(0).toUpperCase()}${fault.slice(1)}.`;
}

if (token === null && document.body.dataset['token'] === 'needed') askForToken('');
else begin();
