import assert from 'node:assert/strict';
import { cursorOf, range, seqOf } from './cursor.js';
import { assertProblem, freshStream, type PageEvent, type Problem, publishLines } from './gapless-client.js';
import type { HttpResponse } from './http.js';
import { SseSubscription, type SubscribeOptions } from './sse-client.js';
import type { SseEvent } from './sse-parser.js';

export interface PrefixEvent extends PageEvent {
  stream: string;
}

export const PREFIX_ID = /^p[a-z0-9]{20}\.(0|[1-9][0-9]*)$/;

export function askPrefix(
  port: number,
  prefix: string,
  { query, ...options }: SubscribeOptions = {},
): Promise<SseSubscription> {
  const parameters = [`prefix=${prefix}`, query].filter((part) => part !== undefined);
  return SseSubscription.ask(port, `${prefix}*`, { streams: [], query: parameters.join('&'), ...options });
}

export async function openPrefix(
  port: number,
  prefix: string,
  options: SubscribeOptions = {},
): Promise<SseSubscription> {
  const subscription = await askPrefix(port, prefix, options);
  if (subscription.status !== 200) assert.fail((await subscription.refusal()).text);
  await subscription.untilPrimed();
  return subscription;
}

export async function refusedPrefix(
  port: number,
  prefix: string,
  options: SubscribeOptions = {},
): Promise<HttpResponse> {
  return (await askPrefix(port, prefix, options)).refusal();
}

/** Names that begin alike, and as nothing else does. */
export function freshPrefix(): string {
  return `${freshStream('prefix')}-`;
}

export function isNotice({ type }: SseEvent): boolean {
  return type.startsWith('stream_') || type === 'resume_unavailable';
}

/** The events, without what the server says of streams. */
export function eventsOf({ events }: SseSubscription): PrefixEvent[] {
  return events.filter((event) => !isNotice(event)).map(({ data }) => JSON.parse(data) as PrefixEvent);
}

/** The seqs that came of a stream. */
export function seqsOf(subscription: SseSubscription, stream: string): number[] {
  return eventsOf(subscription).flatMap(({ stream: of, id }) => (of === stream ? [seqOf(id)] : []));
}

/** What the server said of streams. */
export function notices({ events }: SseSubscription): string[][] {
  return events
    .filter(isNotice)
    .map(({ type, data }) => [type, (JSON.parse(data) as { stream: string }).stream]);
}

/** Streams whose names begin so, each with so many events. */
export async function filled(
  port: number,
  prefix: string,
  names: readonly string[],
  events: number,
): Promise<string[]> {
  const streams = names.map((name) => prefix + name);
  for (const stream of streams) await publishLines(port, stream, range(1, events).map(String));
  return streams;
}

/**
 * Who follows streams by a prefix, breaks, and comes back with any of the ids that it was given: what it has of each
 * stream after each id, and that nothing is missing or comes twice (I1, I2).
 */
export class PrefixFollower {
  /** After each id that was given on any connection, the cursor of each stream. */
  readonly #after = new Map<string, ReadonlyMap<string, string>>();
  #now: ReadonlyMap<string, string> = new Map();

  /** Ids of the connection that was taken up last, in order. */
  ids: string[] = [];

  /** The seqs that are known of a stream; 0 where nothing is. */
  seqOf(stream: string): number {
    return Number(this.#now.get(stream)?.split('.')[1] ?? 0);
  }

  /** Takes up all that came on a connection that began with this id, null for the first. */
  takeUp(subscription: SseSubscription, lastEventId: string | null): void {
    if (lastEventId !== null) {
      const before = this.#after.get(lastEventId);
      assert.ok(before !== undefined, `${lastEventId} was never given`);
      this.#now = before;
    }
    const [primed = ''] = subscription.idsWithoutEvent;
    this.ids = [primed];
    this.#note(primed);
    for (const event of subscription.events) {
      assert.ok(event.carriesId, 'everything that is told has an id');
      const told = JSON.parse(event.data) as PrefixEvent & { cursor: string };
      this.#now = new Map(this.#now);
      const moving = this.#now as Map<string, string>;
      if (event.type === 'stream_deleted') moving.delete(told.stream);
      else if (event.type === 'stream_closed') assert.equal(told.cursor, moving.get(told.stream));
      else moving.set(told.stream, this.#next(told));
      this.ids.push(event.id);
      this.#note(event.id);
    }
  }

  #next({ stream, id }: PrefixEvent): string {
    const [epoch = '', seq] = id.split('.');
    const before = this.#now.get(stream) ?? cursorOf(epoch, 0);
    const [epochBefore, seqBefore] = before.split('.');
    assert.deepEqual([epoch, Number(seq)], [epochBefore, Number(seqBefore) + 1], `${stream} after ${before}`);
    return id;
  }

  #note(id: string): void {
    assert.match(id, PREFIX_ID);
    assert.ok(!this.#after.has(id), `${id} stands for two positions`);
    this.#after.set(id, this.#now);
  }
}

/** The server does not keep the cursor (contract 4.4). */
export function assertUnknown(response: HttpResponse): Problem {
  const problem = assertProblem(response, 410, 'resume_unavailable');
  assert.equal(problem.reason, 'cursor_unknown');
  return problem;
}
