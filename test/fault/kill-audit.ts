import assert from 'node:assert/strict';
import { cursorOf, positionOf } from '../support/cursor.js';
import type { GapChecker } from '../support/gap-checker.js';
import { type Page, type PageEvent, readPage, type StreamState, stateOf } from '../support/gapless-client.js';

/** What is known of one stream over all processes. */
interface Audited {
  epoch: string | null;
  /** Everything up to here has been read. */
  seq: number;
}

/**
 * Reads, after each restart, by pages what the log brought back, and tells the gap checker that this is all: it holds it
 * against what publishers were told. A batch is there whole or not at all, and what is not there stays lost.
 */
export class KillAudit {
  readonly #port: number;
  readonly #checker: GapChecker;
  readonly #streams: ReadonlyMap<string, Audited>;
  #audits = 0;

  constructor(port: number, checker: GapChecker, streams: readonly string[]) {
    this.#port = port;
    this.#checker = checker;
    this.#streams = new Map(streams.map((stream) => [stream, { epoch: null, seq: 0 }]));
  }

  /** While nobody publishes: reads on to the end of each stream. */
  async run(): Promise<void> {
    this.#audits++;
    for (const [stream, audited] of this.#streams) {
      const state = await this.#stand(stream, audited);
      const events = await this.#read(`audit/${stream}`, stream, state.epoch, audited.seq);
      assert.equal(audited.seq + events.length, state.head, `${stream} does not read to its head`);
      audited.seq = state.head;
      this.#checker.observe({ kind: 'settled', stream, epoch: state.epoch, from: 1 });
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
    this.#checker.observe({ kind: 'asked', by: 'audit', stream });
    const state = await stateOf(this.#port, stream);
    audited.epoch ??= state.epoch;
    assert.equal(state.epoch, audited.epoch, `I3: the epoch of ${stream} changed`);
    assert.equal(state.committed, state.head, `${stream} came back with events that are not committed`);
    const { epoch, floor, logFloor, head } = state;
    const lowest = Math.min(floor, logFloor ?? floor);
    this.#checker.observe({ kind: 'positions', observer: 'audit', stream, epoch, floor: lowest, head });
    return state;
  }

  async #read(reader: string, stream: string, epoch: string, after: number): Promise<PageEvent[]> {
    const connection = `${reader}#${this.#audits}`;
    this.#checker.observe({ kind: 'asked', by: connection, stream });
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
}
