import { assert } from '../assert.js';
import { type EpochLog, type Place, type Publish, type Rule, StreamHistory } from './event-history.js';
import type {
  Advanced,
  CaughtUp,
  Connected,
  Ended,
  EventSeen,
  Observation,
  Position,
  PositionsSeen,
  PublishBegun,
  Refused,
} from './observation.js';
import { PositionRules, type ToldPositions } from './told-positions.js';

export interface Violation extends Place {
  rule: Rule;
  what: string;
  stream: string;
}

interface Connection {
  id: string;
  reader: Reader;
  history: StreamHistory;
  log: EpochLog;
  from: number;
  last: number;
  /** No event has come yet. */
  isFresh: boolean;
  filtered: boolean;
  /** Of a reader by types: those, and the seqs of what it got. */
  wanted: { types: readonly string[]; got: Set<number> } | null;
  /** What ended it. */
  over: string | null;
}

/** One logical follower over all its connections. */
interface Reader {
  /** Where it stands; null before its first connection and after a refusal. */
  at: Position | null;
  /** What its last refusal named as missing ends here; until it is connected again. */
  told: Position | null;
}

const VIOLATIONS_KEPT_MAX = 50;

/**
 * The judge of the promise. Fed, in the order they happened, with what publishers did and what readers saw, it
 * decides in one pass and without a clock whether any reader had a gap or a duplicate. No look into the broker: it
 * believes only what came over the wire. An observation that cannot be is a fault of whoever feeds it, and throws.
 *
 * - G1 the seqs on one connection are consecutive, also up to its end, and no reader goes on beyond what it had
 *   unless told
 * - G2 the first event after a resume at c is c+1, or there is a refusal, which must be true, and no event
 * - G3 (stream, epoch, seq) names one content, for every reader and for ever
 * - G4 an acknowledged publish stands at its seqs, whole, and one that was refused nowhere; no content stands
 *   twice or comes from nowhere
 * - G5 acknowledged before the other began means a smaller seq
 * - G6 floor and head never go back, a closed stream does not grow, and no reader passes from one epoch to another
 *   untold
 * - G7 a duplicate comes only across a reconnect, and only if the reader resumed below what it had
 */
export class GapRules {
  readonly violations: Violation[] = [];
  violationCount = 0;
  eventCount = 0;
  resumeCount = 0;
  refusalCount = 0;

  readonly #streams = new Map<string, StreamHistory>();
  readonly #publishes = new Map<string, { history: StreamHistory; publish: Publish }>();
  readonly #connections = new Map<string, Connection>();
  readonly #readers = new Map<string, Reader>();
  readonly #positions = new PositionRules();

  observe(observation: Observation): void {
    switch (observation.kind) {
      case 'event':
        return this.#event(observation);
      case 'advanced':
        return this.#advanced(observation);
      case 'asked':
        return this.#positions.ask(observation.by, this.#stream(observation.stream));
      case 'connected':
        return this.#connected(observation);
      case 'refused':
        return this.#refused(observation);
      case 'ended':
        return this.#ended(observation);
      case 'caught-up':
        return this.#caughtUp(observation);
      case 'publish-begun':
        return this.#publishBegun(observation);
      case 'publish-acked': {
        const { history, publish } = this.#publishOf(observation.publish);
        return history.acknowledge(publish, observation);
      }
      case 'publish-refused': {
        const { history, publish } = this.#publishOf(observation.publish);
        return history.exclude(publish, 'refused', observation.publish);
      }
      case 'positions':
        return this.#positionsSeen(observation);
      case 'settled':
        return this.#stream(observation.stream).settle(observation);
    }
  }

  /** Publishes without an answer, of all streams: those that `settled` found in the stream, and the others. */
  get unanswered(): { found: number; lost: number } {
    const sum = { found: 0, lost: 0 };
    for (const { unanswered } of this.#streams.values()) {
      sum.found += unanswered.found;
      sum.lost += unanswered.lost;
    }
    return sum;
  }

  /** Every violation that was kept, a line each, with its place. */
  describeViolations(): string {
    const lines = this.violations.map(
      ({ rule, what, stream, epoch, seq, witness }) =>
        `${rule} ${what} (${stream} ${epoch}.${seq}, ${witness})`,
    );
    return `${this.violationCount} violations:\n${lines.join('\n')}`;
  }

  #publishBegun(begun: PublishBegun): void {
    const history = this.#stream(begun.stream);
    assert(!this.#publishes.has(begun.publish), 'each publish needs a name of its own');
    this.#publishes.set(begun.publish, { history, publish: history.begin(begun) });
  }

  /** A publish that is answered; each is answered once at most. */
  #publishOf(id: string) {
    const known = this.#publishes.get(id);
    assert(known !== undefined, 'answered before it began, or twice');
    this.#publishes.delete(id);
    return known;
  }

  #connected(connected: Connected): void {
    const { connection, reader: readerId, stream, epoch, after, types, joined = false } = connected;
    assert(!this.#connections.has(connection), 'each connection needs a name of its own');
    const history = this.#stream(stream);
    const reader = this.#reader(readerId);
    const place = { stream, epoch, seq: after, witness: connection };
    if (!joined) this.#judgeReturn(readerId, reader, place);
    const { floor, head } = connected;
    this.#judgePositions(stream, { by: connection, epoch, after, floor, head });

    const before = reader.at;
    const last = !joined && before?.epoch === epoch ? Math.max(before.seq, after) : after;
    reader.at = { epoch, seq: last };
    reader.told = null;
    const filtered = connected.filtered === true || types !== undefined;
    const wanted = types === undefined ? null : { types, got: new Set<number>() };
    const log = history.log(epoch);
    const from = { from: after, last: after, isFresh: true };
    this.#connections.set(connection, {
      ...{ id: connection, reader, history, log, filtered, wanted, over: null },
      ...from,
    });
  }

  #judgeReturn(id: string, { at, told }: Reader, place: Place & { stream: string }): void {
    if (at !== null) {
      this.resumeCount++;
      if (at.epoch !== place.epoch) this.#violate('G6', `${id} came from ${at.epoch} untold`, place);
      else if (place.seq > at.seq) this.#violate('G1', `${id} had ${at.seq}, moved on untold`, place);
    } else if (told?.epoch === place.epoch && place.seq > told.seq) {
      this.#violate('G1', `${id} was told what is missing through ${told.seq} only`, place);
    }
  }

  #event({ connection: id, epoch, seq, content }: EventSeen): void {
    this.eventCount++;
    const connection = this.#connection(id);
    this.#advance(connection, epoch, seq);
    connection.wanted?.got.add(seq);
    connection.history.see(connection.history.log(epoch), seq, content, id);
  }

  #advanced({ connection: id, epoch, seq }: Advanced): void {
    const connection = this.#connection(id);
    assert(connection.filtered, 'only a filtered reader advances without events');
    this.#advance(connection, epoch, seq);
  }

  #advance(connection: Connection, epoch: string, seq: number): void {
    const { log, last, isFresh, filtered, over } = connection;
    const place = this.#placeOf(connection, epoch, seq);
    if (over !== null) this.#violate('G2', `an event after ${over}`, place);
    if (epoch !== log.epoch) {
      this.#violate('G6', `of another epoch than ${log.epoch}, which was announced`, place);
      return;
    }
    if (seq <= last) this.#violate(isFresh ? 'G2' : 'G7', `came again or out of order, after ${last}`, place);
    else if (seq !== last + 1 && !filtered)
      this.#violate(isFresh ? 'G2' : 'G1', `expected ${last + 1}`, place);
    connection.isFresh = false;
    connection.last = Math.max(last, seq);
    const { at } = connection.reader;
    if (at?.epoch === epoch) at.seq = Math.max(at.seq, seq);
  }

  #refused({ connection, reader: readerId, stream, reason, cursor, epoch, floor, head }: Refused): void {
    this.refusalCount++;
    const place = { stream, ...cursor, witness: connection };
    const same = cursor.epoch === epoch;
    const covered = same && cursor.seq + 1 >= floor && cursor.seq <= head;
    if (covered) this.#violate('G2', `refused (${reason}) although ${floor}..${head} covers it`, place);
    const truth = !same ? 'epoch_changed' : cursor.seq > head ? 'ahead_of_head' : 'evicted';
    if (!covered && reason !== truth) this.#violate('G2', `refused as ${reason}, but it is ${truth}`, place);

    const reader = this.#reader(readerId);
    const { at } = reader;
    if (at !== null && at.epoch === epoch && head < at.seq)
      this.#violate('G6', `the head is said to be ${head}, but ${readerId} had ${at.seq}`, place);
    if (epoch !== null) this.#judgePositions(stream, { by: connection, epoch, floor, head });

    const open = this.#connections.get(connection);
    if (open !== undefined) open.over = 'the refusal';
    // Told plainly, the reader may go on from anywhere that lies in what was named.
    reader.at = null;
    reader.told = epoch === null ? null : { epoch, seq: head };
  }

  #ended({ connection: id, reason, last }: Ended): void {
    const connection = this.#connection(id);
    const { log, reader, filtered } = connection;
    const place = this.#placeOf(connection, last.epoch, last.seq);
    connection.over = 'the end';
    if (last.epoch !== log.epoch) this.#violate('G6', `the end is of another epoch than ${log.epoch}`, place);
    else if (filtered ? last.seq < connection.last : last.seq !== connection.last)
      this.#violate('G1', `the end, but the reader was left at ${connection.last}`, place);
    if (reason === 'deleted') {
      reader.at = null;
      return;
    }
    if (log.endedAt !== null && log.endedAt !== last.seq)
      this.#violate('G6', `the end was ${log.endedAt}`, place);
    const known = Math.max(log.seenThrough, log.ackedThrough);
    if (known > last.seq) this.#violate('G6', `the end, but ${known} stands beyond it`, place);
    log.endedAt ??= last.seq;
  }

  #caughtUp({ connection: id }: CaughtUp): void {
    const connection = this.#connection(id);
    const { log, from, last, wanted, history } = connection;
    if (last < log.ackedThrough) {
      const place = this.#placeOf(connection, log.epoch, log.ackedThrough);
      this.#violate('G4', `acknowledged, but the reader was left at ${last}`, place);
    }
    if (wanted === null) return;
    for (const seq of log.contentBySeq.keys()) {
      if (seq <= from || seq > last || wanted.got.has(seq)) continue;
      const type = history.typeAt(log, seq);
      if (type !== undefined && wanted.types.includes(type))
        this.#violate(
          'G1',
          `left out, although ${type} was wanted`,
          this.#placeOf(connection, log.epoch, seq),
        );
    }
  }

  #positionsSeen(now: PositionsSeen): void {
    const { observer, stream, epoch, floor, head } = now;
    this.#positions.compare(now, this.#stream(stream).report);
    this.#judgePositions(stream, { by: observer, epoch, floor, head });
  }

  #judgePositions(stream: string, told: ToldPositions): void {
    const history = this.#stream(stream);
    this.#positions.judge(told, history.log(told.epoch), history.report);
  }

  #placeOf({ id, history }: Connection, epoch: string, seq: number): Place & { stream: string } {
    return { stream: history.stream, epoch, seq, witness: id };
  }

  #violate(rule: Rule, what: string, place: Place & { stream: string }): void {
    this.violationCount++;
    if (this.violations.length < VIOLATIONS_KEPT_MAX) this.violations.push({ rule, what, ...place });
  }

  #connection(id: string): Connection {
    const connection = this.#connections.get(id);
    assert(connection !== undefined, 'nothing is known of this connection');
    return connection;
  }

  #reader(id: string): Reader {
    let reader = this.#readers.get(id);
    if (reader === undefined) {
      reader = { at: null, told: null };
      this.#readers.set(id, reader);
    }
    return reader;
  }

  #stream(name: string): StreamHistory {
    let history = this.#streams.get(name);
    if (history === undefined) {
      history = new StreamHistory(name, (rule, what, place) =>
        this.#violate(rule, what, { stream: name, ...place }),
      );
      this.#streams.set(name, history);
    }
    return history;
  }
}
