import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Locator, Page } from 'playwright-core';
import { reasonToSkipBrowser } from '../support/chromium.js';
import { cursorOf, range } from '../support/cursor.js';
import { DEADLINE_MS, eventually } from '../support/deadline.js';
import { freshStream, type Published } from '../support/gapless-client.js';
import { type HttpRequest, type HttpResponse, request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';
import { bearer, Files, Issuer, keySetOf } from '../support/tokens.js';
import { LiveSocket } from '../support/websocket-client.js';
import { useStage } from './stage.js';

const HOSTILE = '<img src=x onerror="window.harmed = true"><script>window.harmed = true</script>';

/** In the page: where each mark of the bar stands, and what it says. */
const MARKS = `[...document.querySelectorAll('.bar .mark')].map((mark) =>
  [mark.getAttribute('style'), mark.getAttribute('title'), mark.textContent])`;

const files = new Files();
const issuer = await Issuer.create('ES256');
const keysFile = files.write('keys.json', keySetOf(issuer));
const operator = await issuer.grant({ admin: true, publish: ['*'], subscribe: ['*'] }, { sub: 'operator' });
const adminOnly = await issuer.grant({ admin: true }, { sub: 'admin-only' });
const program = await issuer.grant({ publish: ['*'], subscribe: ['*'] }, { sub: HOSTILE });

describe('the console in a browser', { skip: reasonToSkipBrowser() ?? false }, () => {
  const stage = useStage({ flags: ['--jwt-keys-file', keysFile] });
  let page: Page;
  /** What the browser complained about: breaches of the policy, and errors of the page. */
  let complaints: string[];

  beforeEach(async () => {
    page = await stage.browser.newPage();
    page.setDefaultTimeout(DEADLINE_MS);
    complaints = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) complaints.push(message.text());
    });
  });

  afterEach(async () => {
    const harmed = await page.evaluate('window.harmed === true');
    await page.close();
    assert.deepEqual([harmed, complaints], [false, []]);
  });

  async function open(token: string | null = operator, fragment = ''): Promise<void> {
    await page.goto(`http://127.0.0.1:${stage.proxy.port}/console${fragment}`);
    if (token === null) return;
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  }

  function ask(options: HttpRequest): Promise<HttpResponse> {
    const headers = { ...options.headers, ...bearer(program) };
    return request(stage.broker.port, { ...options, headers });
  }

  async function publishLines(stream: string, lines: readonly string[], type = ''): Promise<Published> {
    const typed = type === '' ? {} : { 'Gapless-Event': type };
    const headers = { 'Content-Type': 'application/x-ndjson', ...typed };
    const path = `/v1/streams/${stream}`;
    const response = await ask({ method: 'POST', path, headers, body: lines.join('\n') });
    assert.equal(response.status, 200, response.text);
    return response.json<Published>();
  }

  /** Waits until the cells of a stream's line say this. */
  async function untilCells(stream: string, expected: readonly string[]): Promise<void> {
    let seen: string[] = [];
    await eventually('the cells', async () => {
      seen = await rowOf(stream).getByRole('cell').allTextContents();
      return isDeepStrictEqual(seen, expected);
    }).catch((cause) => assert.deepEqual(seen, expected, String(cause)));
  }

  function rowOf(stream: string): Locator {
    return page.getByRole('row').filter({ has: page.getByRole('link', { name: stream, exact: true }) });
  }

  /** On a small telephone nothing is beside the screen. */
  async function fitsSmallScreens(): Promise<void> {
    await page.setViewportSize({ width: 340, height: 700 });
    assert.equal(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0);
  }

  const activity = (): Locator => page.getByRole('region', { name: 'Resumes and refusals' });

  it('asks for a token, says what is wrong with one, keeps a good one for the tab, and forgets it', async () => {
    await open(null);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    for (const [token, why] of [
      ['nonsense', 'What was sent is not a token.'],
      ['no€sense', 'What was sent is not a token.'],
      [program, 'This token is good, and does not give the right to administer.'],
    ] as const) {
      await page.getByLabel('Token').fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('alert').filter({ hasText: why }).waitFor();
    }
    await page.getByLabel('Token').fill(operator);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Streams', exact: true }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Streams', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    await page.reload();
    await page.getByLabel('Token').waitFor();
  });

  it('lists the streams with where they stand and their slowest reader, and moves with them', async () => {
    const stream = freshStream('listed');
    await open();
    await publishLines(stream, range(1, 3).map(String));
    await untilCells(stream, ['', '1', '3', '3', '0', '–']);
    const subscription = await SseSubscription.open(stage.broker.port, stream, { headers: bearer(program) });
    await publishLines(stream, range(4, 2001).map(String));
    await untilCells(stream, ['', '1', '2,001', '2,001', '1', 'up to date']);
    subscription.cut();
    await fitsSmallScreens();
    await page.getByRole('searchbox').fill('no-stream-begins-so');
    await page.getByText('No stream has a name that begins so.').waitFor();
  });

  it('shows a stream with every reader on its bar, and its events as they come', async () => {
    const stream = freshStream('shown');
    const { epoch } = await publishLines(stream, range(1, 200).map(String));
    const headers = bearer(program);
    const named = await SseSubscription.open(stage.broker.port, stream, {
      headers,
      query: `subscriber=billing&cursor=${cursorOf(epoch, 100)}`,
    });
    const socket = await LiveSocket.open(stage.broker.port, stream, { headers });
    await open(operator, `#/streams/${stream}`);
    const bar = page.getByRole('img', {
      name: /Events 1 to 200 are kept\. 3 readers, .* 1 named subscriber/,
    });
    await bar.waitFor();
    const expected = [
      ['left: 100%;', '3 readers at 200', '3'],
      ['left: 50%;', `billing at ${cursorOf(epoch, 100)}`, ''],
    ];
    let marks: unknown;
    // They may still be on their way to the newest event.
    await eventually('the marks', async () => {
      marks = await page.evaluate(MARKS);
      return isDeepStrictEqual(marks, expected);
    }).catch((cause) => assert.deepEqual(marks, expected, String(cause)));
    const readers = page.getByRole('region', { name: 'Readers' });
    await readers.getByRole('row').filter({ hasText: 'billing' }).filter({ hasText: '100' }).waitFor();

    const events = page.getByRole('region', { name: 'Events' });
    await events.getByText('200', { exact: true }).first().waitFor();
    assert.equal(await events.locator('summary').count(), 50);
    await publishLines(stream, ['{"hello": "world"}'], 'greeting');
    const newest = events.locator('summary').first();
    await newest.filter({ hasText: 'greeting' }).waitFor();
    await newest.click();
    await events.locator('pre').filter({ hasText: '{\n  "hello": "world"\n}' }).waitFor();
    await events.getByText(cursorOf(epoch, 201), { exact: true }).waitFor();
    await fitsSmallScreens();
    named.cut();
    socket.cut();
  });

  it('publishes an event, and says where it is', async () => {
    const stream = freshStream('published');
    const { epoch } = await publishLines(stream, ['first']);
    await open(operator, `#/streams/${stream}`);
    await page.getByLabel('Type').fill('test');
    await page.getByLabel('Data').fill('by hand');
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByText(`Published as ${cursorOf(epoch, 2)}`).waitFor();
    await page.getByRole('region', { name: 'Events' }).getByText('by hand').waitFor();
    await ask({ method: 'POST', path: `/v1/streams/${stream}/close` });
    await page.getByText('The stream was closed here.').waitFor();
    await page.getByLabel('Data').fill('too late');
    await page.keyboard.press('Control+Enter');
    await page.getByText('The stream is closed').waitFor();
  });

  it('publishes an event once, however often it is sent while it is under way, and keeps the next', async () => {
    const stream = freshStream('pressed');
    await publishLines(stream, ['first']);
    await open(operator, `#/streams/${stream}`);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let sent = 0;
    await page.route('**/v1/streams/*', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      sent++;
      await released;
      await route.continue();
    });
    const data = page.getByLabel('Data');
    await data.fill('by hand');
    await page.keyboard.press('Control+Enter');
    await page.keyboard.press('Control+Enter');
    await data.fill('the next one');
    release();
    await page.getByRole('status').filter({ hasText: 'Published as' }).waitFor();
    assert.deepEqual([sent, await data.inputValue()], [1, 'the next one']);
    await page.unroute('**/v1/streams/*');
  });

  it('shows who resumes and who is refused as it happens, and why', async () => {
    const stream = freshStream('happens');
    await open();
    const { epoch } = await publishLines(stream, range(1, 9).map(String));
    const path = `/v1/streams/${stream}`;
    const resume = (seq: number) => ({ ...bearer(program), 'Last-Event-ID': cursorOf(epoch, seq) });
    const back = await SseSubscription.open(stage.broker.port, stream, { headers: resume(4) });
    back.cut();
    await activity().getByText('5 events from memory').waitFor();
    const refused = await request(stage.broker.port, {
      path,
      headers: { Accept: 'text/event-stream', ...resume(17) },
    });
    assert.equal(refused.status, 410);
    const item = activity().getByRole('listitem').filter({ hasText: stream }).first();
    await item.filter({ hasText: 'it asked after event 17, and the newest is 9' }).waitFor();
    await item.filter({ hasText: refused.header('gapless-request') as string }).waitFor();
    await activity().getByLabel('Refusals only').check();
    assert.equal(await activity().getByText('5 events from memory').count(), 0);
    await item.getByRole('link', { name: stream }).click();
    await page.getByRole('heading', { name: stream }).waitFor();
    await activity().getByText('5 events from memory').waitFor();
  });

  it('is used with the keyboard alone: to a stream, through its events, and back to where one was', async () => {
    const stream = freshStream('keys');
    for (const name of ['a', 'b', 'c']) await publishLines(`${stream}-${name}`, range(1, 3).map(String));
    await open();
    await rowOf(`${stream}-a`).waitFor();
    const focused = () => page.evaluate('document.activeElement.textContent');
    await page.keyboard.press('/');
    await page.keyboard.type(stream);
    await page.getByText('3 streams').waitFor();
    await page.keyboard.press('ArrowDown');
    for (const [key, name] of [
      ['ArrowDown', 'b'],
      ['End', 'c'],
      ['ArrowDown', 'c'],
      ['Home', 'a'],
      ['ArrowDown', 'b'],
    ] as const) {
      await page.keyboard.press(key);
      assert.equal(await focused(), `${stream}-${name}`);
    }
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: `${stream}-b` }).waitFor();
    assert.equal(await focused(), `${stream}-b`);
    const events = page.getByRole('region', { name: 'Events' });
    await events.locator('summary').nth(2).waitFor();
    for (let presses = 0; !(await isEvent(page)); presses++) {
      assert.ok(presses < 20, 'Tab comes to the events');
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await events.locator('details[open]').filter({ hasText: '2' }).waitFor();
    await page.keyboard.press('Escape');
    await eventually('the focus where it was', async () => (await focused()) === `${stream}-b`);
  });

  it('shows names, types and data of strangers as text, and nothing of them becomes part of the page', async () => {
    const stream = freshStream('hostile');
    const { epoch } = await publishLines(
      stream,
      [HOSTILE, JSON.stringify({ [HOSTILE]: HOSTILE })],
      HOSTILE.slice(0, 60),
    );
    const reader = await SseSubscription.open(stage.broker.port, stream, { headers: bearer(program) });
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': HOSTILE };
    assert.equal((await ask({ path: `/v1/streams/${stream}`, headers })).status, 400);
    const name = "<img/src=x/onerror='window.harmed=true'>";
    assert.equal(
      (await ask({ method: 'POST', path: `/v1/streams/${name.replaceAll('/', '&')}` })).status,
      400,
    );
    await open();
    await activity().getByText(HOSTILE).first().waitFor();
    await activity().getByText(name.replaceAll('/', '&')).first().waitFor();
    await page.goto(`http://127.0.0.1:${stage.proxy.port}/console#/streams/${stream}`);
    const events = page.getByRole('region', { name: 'Events' });
    for (const index of [0, 1]) await events.locator('summary').nth(index).click();
    await events.locator('pre').filter({ hasText: HOSTILE }).first().waitFor();
    await page.getByRole('region', { name: 'Readers' }).getByText(HOSTILE).waitFor();
    await events.getByText(cursorOf(epoch, 2), { exact: true }).waitFor();
    assert.equal(await page.locator('img:not(.brand img), script:not([src])').count(), 0);
    await page.goto(`http://127.0.0.1:${stage.proxy.port}/console#/streams/${HOSTILE}`);
    await page.getByRole('heading', { level: 1 }).filter({ hasText: HOSTILE }).waitFor();
    reader.cut();
  });

  it('shows a stream whose events the token may not read, and says so', async () => {
    const stream = freshStream('unread');
    await publishLines(stream, ['secret']);
    await open(adminOnly, `#/streams/${stream}`);
    await page.getByText('This token may not read the events of this stream.').waitFor();
    await page.getByRole('img', { name: /Events 1 to 1 are kept/ }).waitFor();
    await page.getByLabel('Data').fill('x');
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByText('This token may not publish to this stream.').waitFor();
    assert.equal(await page.getByText('secret').count(), 0);
  });

  it('says when the broker does not answer, and goes on when it does', async () => {
    const stream = freshStream('away');
    await publishLines(stream, ['1']);
    await open();
    await rowOf(stream).waitFor();
    stage.proxy.cutAfterBytes(1);
    stage.proxy.cutAll();
    await page.getByText('The broker does not answer. Trying again.').waitFor();
    assert.equal(await rowOf(stream).count(), 1, 'what was known is still there');
    stage.proxy.cutAfterBytes(Number.POSITIVE_INFINITY);
    await publishLines(stream, ['2', '3']);
    await rowOf(stream).filter({ hasText: '3' }).waitFor();
    await page.getByText('The broker does not answer.').waitFor({ state: 'detached' });
  });

  it('says so where there is no such stream, makes none by looking, and shows it when it is made', async () => {
    const stream = freshStream('absent');
    await open(operator, `#/streams/${stream}`);
    await page.getByText('There is no such stream').waitFor();
    const state = await ask({ path: `/v1/streams/${stream}/state` });
    assert.equal(state.status, 404);
    await publishLines(stream, ['here it is']);
    await page.getByRole('region', { name: 'Events' }).getByText('here it is').waitFor();
    const removal = { method: 'DELETE', path: `/v1/streams/${stream}`, headers: bearer(operator) };
    await request(stage.broker.port, removal);
    await page.getByRole('heading', { name: 'The stream was deleted' }).waitFor();
  });
});

async function isEvent(page: Page): Promise<boolean> {
  return (await page.evaluate('document.activeElement.tagName')) === 'SUMMARY';
}
