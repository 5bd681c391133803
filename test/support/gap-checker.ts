import assert from 'node:assert/strict';
import type {
  Advanced,
  CaughtUp,
  Connected,
  EventSeen,
  Observation,
  PositionsSeen,
  PublishAcked,
  PublishBegun,
  Refused,
} from './observation.js';

export type Rule = 'G1' | 'G2' | 'G3' | 'G4' | 'G5' | 'G6' | 'G7';

export interface Violation {
  rule: Rule;
  what: string;
  stream: string;
  epoch: string;
  seq: number;
  /** The connection, publish or observer that showed it. */
  witness: string;
}

/** One (stream, epoch): what is known of it from all sides. */
interface Log {
  stream: string;
  epoch: string;
  contentBySeq: Map<number, string>;
  seqByContent: Map<string, number>;
  ackedThrough: number;
}

interface Stream {
  logs: Map<string, Log>;
  /** Contents that somebody tried to publish. Null until a publish was observed: then nothing is known to be foreign. */
  contents: Set<string> | null;
  lastAcked: { epoch: string; seq: number } | null;
}

interface Publish {
  begun: PublishBegun;
  /** The newest acknowledged position when this publish began. */
  after: { epoch: string; seq: number } | null;
}

interface Connection {
  id: string;
  reader: Reader;
  log: Log;
  last: number;
  first: boolean;
  filtered: boolean;
  refused: boolean;
}

/** One logical follower over all its connections. */
interface Reader {
  epoch: string | null;
  last: number;
}

const VIOLATIONS_KEPT_MAX = 50;

/**
 * The judge of the promise. Fed, in the order they happened, with what publishers did and what readers saw, it decides in
 * one pass and without a clock whether any reader had a gap or a duplicate. No look into the broker: it believes only
 * what came over the wire.
 *
 * - G1 the seqs on one connection are consecutive, and no reader goes on beyond what it had unless told
 * - G2 the first event after a resume at c is c+1, or there is a refusal, which must be true, and no event
 * - G3 (stream, epoch, seq) names one content, for every reader and for ever
 * - G4 an acknowledged publish stands at its seqs, whole; no content stands twice or comes from nowhere
 * - G5 acknowledged before the other began means a smaller seq
 * - G6 floor and head never go back, and no reader passes from one epoch to another untold
 * - G7 a duplicate comes only across a reconnect, and only if the reader resumed below what it had
 */
export class GapChecker {
  readonly violations: Violation[] = [];
  violationCount = 0;
  eventCount = 0;
  resumeCount = 0;
  refusalCount = 0;

  readonly #streams = new Map<string, Stream>();
  readonly #publishes = new Map<string, Publish>();
  readonly #connections = new Map<string, Connection>();
  readonly #readers = new Map<string, Reader>();
  readonly #positions = new Map<string, PositionsSeen>();

  observe(observation: Observation): void {
    switch (observation.kind) {
      case 'event':
        this.#event(observation);
        break;
      case 'advanced':
        this.#advanced(observation);
        break;
      case 'connected':
        this.#connected(observation);
        break;
      case 'refused':
        this.#refused(observation);
        break;
      case 'caught-up':
        this.#caughtUp(observation);
        break;
      case 'publish-begun':
        this.#publishBegun(observation);
        break;
      case 'publish-acked':
        this.#publishAcked(observation);
        break;
      case 'positions':
        this.#positionsSeen(observation);
        break;
    }
  }

  /** Fails with every violation kept, each with its place. */
  assertClean(): void {
    const lines = this.violations.map(
      ({ rule, what, stream, epoch, seq, witness }) =>
        `${rule} ${what} (${stream} ${epoch}.${seq}, ${witness})`,
    );
    assert.equal(this.violationCount, 0, `${this.violationCount} violations:\n${lines.join('\n')}`);
  }

  #publishBegun(begun: PublishBegun): void {
    const stream = this.#stream(begun.stream);
    stream.contents ??= new Set();
    for (const content of begun.contents) {
      assert.ok(!stream.contents.has(content), 'the checker needs contents unlike all others');
      stream.contents.add(content);
    }
    this.#publishes.set(begun.publish, { begun, after: stream.lastAcked });
  }

  #publishAcked({ publish, epoch, first, last }: PublishAcked): void {
    const known = this.#publishes.get(publish);
    assert.ok(known, 'acknowledged before it began');
    this.#publishes.delete(publish);
    const { begun, after } = known;
    const log = this.#log(begun.stream, epoch);
    const at = (seq: number) => ({ stream: begun.stream, epoch, seq, witness: publish });
    if (last - first + 1 !== begun.contents.length) {
      this.#violate('G4', `${begun.contents.length} events acknowledged as ${first}..${last}`, at(first));
      return;
    }
    for (const [index, content] of begun.contents.entries())
      this.#place(log, first + index, content, 'G4', publish);
    if (after?.epoch === epoch && first <= after.seq) {
      this.#violate('G5', `began after ${after.seq} was acknowledged`, at(first));
    }
    log.ackedThrough = Math.max(log.ackedThrough, last);
    const stream = this.#stream(begun.stream);
    if (stream.lastAcked?.epoch !== epoch || stream.lastAcked.seq < last)
      stream.lastAcked = { epoch, seq: last };
  }

  #connected({ connection, reader: readerId, stream, epoch, after, filtered = false }: Connected): void {
    assert.ok(!this.#connections.has(connection), 'each connection needs a name of its own');
    const log = this.#log(stream, epoch);
    const reader = this.#reader(readerId);
    const place = { stream, epoch, seq: after, witness: connection };
    if (reader.epoch !== null) {
      this.resumeCount++;
      if (reader.epoch !== epoch) this.#violate('G6', `${readerId} came from ${reader.epoch} untold`, place);
      else if (after > reader.last)
        this.#violate('G1', `${readerId} had ${reader.last}, moved on untold`, place);
    }
    reader.last = reader.epoch === epoch ? Math.max(reader.last, after) : after;
    reader.epoch = epoch;
    const opened = { id: connection, reader, log, last: after, first: true, filtered, refused: false };
    this.#connections.set(connection, opened);
  }

  #event({ connection: id, epoch, seq, content }: EventSeen): void {
    this.eventCount++;
    const connection = this.#connection(id);
    this.#advance(connection, epoch, seq);
    this.#place(this.#logOf(connection, epoch), seq, content, 'G3', id);
  }

  #advanced({ connection: id, epoch, seq }: Advanced): void {
    const connection = this.#connection(id);
    assert.ok(connection.filtered, 'only a filtered reader advances without events');
    this.#advance(connection, epoch, seq);
  }

  #advance(connection: Connection, epoch: string, seq: number): void {
    const { log, last, first, filtered } = connection;
    const place = { stream: log.stream, epoch, seq, witness: connection.id };
    if (connection.refused) this.#violate('G2', 'an event after the refusal', place);
    if (epoch !== log.epoch) {
      this.#violate('G6', `of another epoch than ${log.epoch}, which was announced`, place);
      return;
    }
    if (seq <= last) this.#violate(first ? 'G2' : 'G7', `came again or out of order, after ${last}`, place);
    else if (seq !== last + 1 && !filtered) this.#violate(first ? 'G2' : 'G1', `expected ${last + 1}`, place);
    connection.first = false;
    connection.last = Math.max(last, seq);
    connection.reader.last = Math.max(connection.reader.last, seq);
  }

  #refused({ connection, reader: readerId, stream, reason, cursor, epoch, floor, head }: Refused): void {
    this.refusalCount++;
    const place = { stream, epoch: cursor.epoch, seq: cursor.seq, witness: connection };
    const same = cursor.epoch === epoch;
    const covered = same && cursor.seq + 1 >= floor && cursor.seq <= head;
    if (covered) this.#violate('G2', `refused (${reason}) although ${floor}..${head} covers it`, place);
    const truth = !same ? 'epoch_changed' : cursor.seq > head ? 'ahead_of_head' : 'evicted';
    if (!covered && reason !== truth) this.#violate('G2', `refused as ${reason}, but it is ${truth}`, place);

    const open = this.#connections.get(connection);
    if (open !== undefined) open.refused = true;
    const reader = this.#reader(readerId);
    if (reader.epoch === epoch && head < reader.last) {
      this.#violate('G6', `the head is said to be ${head}, but ${readerId} had ${reader.last}`, place);
    }
    // Told plainly, the reader may go on from anywhere: what it missed has been named.
    reader.epoch = null;
    reader.last = 0;
  }

  #caughtUp({ connection: id }: CaughtUp): void {
    const { log, last } = this.#connection(id);
    if (last >= log.ackedThrough) return;
    const place = { stream: log.stream, epoch: log.epoch, seq: log.ackedThrough, witness: id };
    this.#violate('G4', `acknowledged, but the reader was left at ${last}`, place);
  }

  #positionsSeen(now: PositionsSeen): void {
    const { observer, stream, epoch, floor, head } = now;
    const key = `${observer} ${stream} ${epoch}`;
    const place = { stream, epoch, seq: head, witness: observer };
    const before = this.#positions.get(key);
    if (before !== undefined) {
      if (head < before.head) this.#violate('G6', `the head was ${before.head}`, place);
      if (floor < before.floor) this.#violate('G6', `the floor was ${before.floor}, now ${floor}`, place);
    }
    if (floor > head + 1) this.#violate('G6', `the floor ${floor} lies above the head`, place);
    const { ackedThrough } = this.#log(stream, epoch);
    if (head < ackedThrough) this.#violate('G4', `${ackedThrough} was acknowledged`, place);
    this.#positions.set(key, now);
  }

  #place(log: Log, seq: number, content: string, rule: Rule, witness: string): void {
    const before = log.contentBySeq.get(seq);
    if (before === content) return;
    const place = { stream: log.stream, epoch: log.epoch, seq, witness };
    if (before !== undefined) {
      this.#violate(rule, `two contents: ${excerpt(before)} and ${excerpt(content)}`, place);
      return;
    }
    const contents = this.#stream(log.stream).contents;
    if (contents !== null && !contents.has(content)) {
      this.#violate('G4', `nobody published ${excerpt(content)}`, place);
    }
    const twin = log.seqByContent.get(content);
    if (contents !== null && twin !== undefined) {
      this.#violate('G4', `published once, but stands at ${twin} too`, place);
    }
    log.contentBySeq.set(seq, content);
    log.seqByContent.set(content, seq);
  }

  #violate(rule: Rule, what: string, place: Omit<Violation, 'rule' | 'what'>): void {
    this.violationCount++;
    if (this.violations.length < VIOLATIONS_KEPT_MAX) this.violations.push({ rule, what, ...place });
  }

  #connection(id: string): Connection {
    const connection = this.#connections.get(id);
    assert.ok(connection, `nothing is known of connection ${id}`);
    return connection;
  }

  #reader(id: string): Reader {
    return getOrPut(this.#readers, id, () => ({ epoch: null, last: 0 }));
  }

  #stream(name: string): Stream {
    return getOrPut(this.#streams, name, () => ({ logs: new Map(), contents: null, lastAcked: null }));
  }

  #log(stream: string, epoch: string): Log {
    return getOrPut(this.#stream(stream).logs, epoch, () => ({
      stream,
      epoch,
      contentBySeq: new Map(),
      seqByContent: new Map(),
      ackedThrough: 0,
    }));
  }

  #logOf(connection: Connection, epoch: string): Log {
    return epoch === connection.log.epoch ? connection.log : this.#log(connection.log.stream, epoch);
  }
}

function getOrPut<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function excerpt(content: string): string {
  return JSON.stringify(content.length > 60 ? `${content.slice(0, 60)}…` : content);
}
