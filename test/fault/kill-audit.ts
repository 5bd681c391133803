import assert from 'node:assert/strict';
import { cursorOf, positionOf } from '../support/cursor.js';
import type { GapChecker } from '../support/gap-checker.js';
import { type Page, type PageEvent, readPage, type StreamState, stateOf } from '../support/gapless-client.js';

/** What a publisher was told: `unknown` when the broker died before it answered. */
export type Outcome = 'acknowledged' | 'refused' | 'unknown';

export interface Expected {
  publish: string;
  contents: readonly string[];
  outcome: Outcome;
}

/** What is known of one stream over all processes. */
interface Audited {
  epoch: string | null;
  /** Everything up to here has been read. */
  seq: number;
  /** Publishes whose fate the next audit sees. */
  open: Expected[];
  seqByContent: Map<string, number>;
  /** What an audit did not find must never come. */
  lost: Set<string>;
}

/**
 * Reads, after each restart, by pages what the log brought back, has the gap checker judge it, and holds it against what
 * publishers were told: a batch is there whole or not at all, what was refused is not there, and what was lost stays lost.
 */
export class KillAudit {
  /** Unanswered publishes that were found, and that were not. */
  readonly unanswered = { found: 0, lost: 0 };

  readonly #port: number;
  readonly #checker: GapChecker;
  readonly #streams = new Map<string, Audited>();
  #audits = 0;

  constructor(port: number, checker: GapChecker) {
    this.#port = port;
    this.#checker = checker;
  }

  expect(stream: string, expected: Expected): void {
    this.#audited(stream).open.push(expected);
  }

  /** While nobody publishes: reads on to the end of each stream. */
  async run(): Promise<void> {
    this.#audits++;
    for (const [stream, audited] of this.#streams) {
      const state = await this.#stand(stream, audited);
      const events = await this.#read(`audit/${stream}`, stream, state.epoch, audited.seq);
      assert.equal(audited.seq + events.length, state.head, `${stream} does not read to its head`);
      audited.seq = state.head;
      for (const { id, data } of events) {
        assert.ok(!audited.lost.has(data), `${data} was not there after the restart, and now is ${id}`);
        audited.seqByContent.set(data, positionOf(id).seq);
      }
      for (const expected of audited.open.splice(0)) this.#settle(audited, expected);
    }
  }

  /** Reads every stream once more, from its first event. */
  async runWhole(): Promise<void> {
    for (const [stream, { epoch, seq }] of this.#streams) {
      assert.ok(epoch !== null);
      const events = await this.#read(`whole/${stream}`, stream, epoch, 0);
      assert.equal(events.length, seq);
    }
  }

  /** The stream as it stands after a restart: the same epoch, and nothing in it that is not committed. */
  async #stand(stream: string, audited: Audited): Promise<StreamState> {
    const state = await stateOf(this.#port, stream);
    audited.epoch ??= state.epoch;
    assert.equal(state.epoch, audited.epoch, `I3: the epoch of ${stream} changed`);
    assert.equal(state.committed, state.head, `${stream} came back with events that are not committed`);
    const { epoch, floor, head } = state;
    this.#checker.observe({ kind: 'positions', observer: 'audit', stream, epoch, floor, head });
    return state;
  }

  async #read(reader: string, stream: string, epoch: string, after: number): Promise<PageEvent[]> {
    const connection = `${reader}#${this.#audits}`;
    this.#checker.observe({ kind: 'connected', connection, reader, stream, epoch, after });
    const events: PageEvent[] = [];
    for (let cursor = cursorOf(epoch, after); ; ) {
      const response = await readPage(this.#port, stream, `cursor=${cursor}`);
      assert.equal(response.status, 200, response.text);
      const page = response.json<Page>();
      for (const { id, data } of page.events) {
        this.#checker.observe({ kind: 'event', connection, ...positionOf(id), content: data });
      }
      events.push(...page.events);
      cursor = page.next;
      if (page.upToDate) break;
    }
    this.#checker.observe({ kind: 'caught-up', connection });
    return events;
  }

  #settle(audited: Audited, { publish, contents, outcome }: Expected): void {
    const seqs = contents.map((content) => audited.seqByContent.get(content));
    const [first] = seqs;
    const isWhole = first !== undefined && seqs.every((seq, index) => seq === first + index);
    const isAbsent = seqs.every((seq) => seq === undefined);
    const found = seqs.filter((seq) => seq !== undefined);
    assert.ok(isWhole || isAbsent, `3.1: of the ${contents.length} events of ${publish} there are ${found}`);
    assert.ok(isWhole || outcome !== 'acknowledged', `${publish} was acknowledged and is not there`);
    assert.ok(isAbsent || outcome !== 'refused', `${publish} was refused and is there`);
    if (isAbsent) for (const content of contents) audited.lost.add(content);
    if (outcome === 'unknown') this.unanswered[isWhole ? 'found' : 'lost']++;
    for (const content of contents) audited.seqByContent.delete(content);
  }

  #audited(stream: string): Audited {
    let audited = this.#streams.get(stream);
    if (audited === undefined) {
      audited = { epoch: null, seq: 0, open: [], seqByContent: new Map(), lost: new Set() };
      this.#streams.set(stream, audited);
    }
    return audited;
  }
}
