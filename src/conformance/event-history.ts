import { assert } from '../assert.js';
import type { Position, PublishAcked, PublishBegun, Settled } from './observation.js';

export type Rule = 'G1' | 'G2' | 'G3' | 'G4' | 'G5' | 'G6' | 'G7';

/** Where something was found to be wrong, and the connection, publish or observer that showed it. */
export interface Place {
  epoch: string;
  seq: number;
  witness: string;
}

export type Report = (rule: Rule, what: string, place: Place) => void;

export interface Publish {
  begun: PublishBegun;
  /** The newest acknowledged position when this publish began. */
  after: Position | null;
  acked: Position | null;
  /** Why none of it may be in the stream. */
  absent: 'refused' | 'lost' | null;
}

/** Where a content comes from, and where it stands. */
interface Origin {
  publish: Publish;
  index: number;
  at: Position | null;
}

/** One epoch of a stream: what was seen of it or said about it. */
export interface EpochLog {
  readonly epoch: string;
  readonly contentBySeq: Map<number, string>;
  ackedThrough: number;
  seenThrough: number;
  floorTold: number;
  /** The last event of all, once a reader was told that the stream is closed. */
  endedAt: number | null;
}

/** What answers to later questions must know of an epoch. */
export type Known = Pick<EpochLog, 'ackedThrough' | 'seenThrough' | 'floorTold'>;

/**
 * What is known of one stream from all sides: which content stands at which seq, and what its publishers were told.
 * Judges contents and publishes, the rules G3, G4 and G5 of {@link GapRules}.
 */
export class StreamHistory {
  readonly logs = new Map<string, EpochLog>();
  /** Publishes without an answer that {@link settle} found, and that it did not find. */
  readonly unanswered = { found: 0, lost: 0 };

  /** Null until a publish was observed: then nothing is known to be foreign. */
  #origins: Map<string, Origin> | null = null;
  readonly #unsettled = new Set<Publish>();
  #newestAcked: Position | null = null;

  constructor(
    readonly stream: string,
    readonly report: Report,
  ) {}

  log(epoch: string): EpochLog {
    let log = this.logs.get(epoch);
    if (log === undefined) {
      log = { epoch, contentBySeq: new Map(), ackedThrough: 0, seenThrough: 0, floorTold: 0, endedAt: null };
      this.logs.set(epoch, log);
    }
    return log;
  }

  /** What is known now, epoch by epoch. */
  known(): Map<string, Known> {
    return new Map(
      [...this.logs].map(([epoch, { ackedThrough, seenThrough, floorTold }]) => {
        return [epoch, { ackedThrough, seenThrough, floorTold }];
      }),
    );
  }

  begin(begun: PublishBegun): Publish {
    this.#origins ??= new Map();
    const publish: Publish = { begun, after: this.#newestAcked, acked: null, absent: null };
    for (const [index, content] of begun.contents.entries()) {
      assert(!this.#origins.has(content), 'the judge needs contents unlike all others');
      this.#origins.set(content, { publish, index, at: null });
    }
    this.#unsettled.add(publish);
    return publish;
  }

  acknowledge(publish: Publish, { publish: witness, epoch, first, last }: PublishAcked): void {
    const { begun, after } = publish;
    const place = { epoch, seq: first, witness };
    if (last - first + 1 !== begun.contents.length) {
      this.report('G4', `${begun.contents.length} events acknowledged as ${first}..${last}`, place);
      return;
    }
    const log = this.log(epoch);
    publish.acked = { epoch, seq: last };
    for (const [index, content] of begun.contents.entries())
      this.#place(log, first + index, content, 'G4', witness);
    if (after?.epoch === epoch && first <= after.seq)
      this.report('G5', `began after ${after.seq} was acknowledged`, place);
    log.ackedThrough = Math.max(log.ackedThrough, last);
    if (this.#newestAcked?.epoch !== epoch || this.#newestAcked.seq < last)
      this.#newestAcked = { epoch, seq: last };
  }

  /** Nothing of it may be in the stream, now or later. */
  exclude(publish: Publish, absent: 'refused' | 'lost', witness: string): void {
    publish.absent = absent;
    for (const content of publish.begun.contents) {
      const at = this.#origins?.get(content)?.at;
      if (at) this.report('G4', `${absent}, and stands there: ${excerpt(content)}`, { ...at, witness });
    }
  }

  /** A reader was given a content. */
  see(log: EpochLog, seq: number, content: string, witness: string): void {
    log.seenThrough = Math.max(log.seenThrough, seq);
    this.#place(log, seq, content, 'G3', witness);
  }

  /** Each publish so far is now there whole, or is not, and never comes. */
  settle({ epoch, from }: Settled): void {
    for (const publish of this.#unsettled) {
      this.#unsettled.delete(publish);
      if (publish.absent !== null) continue;
      const { begun, acked } = publish;
      const missing = begun.contents.filter((content) => !this.#origins?.get(content)?.at);
      const isLost = missing.length === begun.contents.length;
      const place = { epoch, seq: acked?.seq ?? 0, witness: begun.publish };
      if (missing.length > 0 && !isLost)
        this.report('G4', `${missing.length} events of a batch are not there`, place);
      if (acked === null) this.unanswered[isLost ? 'lost' : 'found']++;
      if (isLost) this.exclude(publish, 'lost', begun.publish);
    }
    this.#judgeAcked(this.log(epoch), from);
  }

  /** The type of the event at `seq`, where that is known. */
  typeAt(log: EpochLog, seq: number): string | undefined {
    const origin = this.#originAt(log, seq);
    return origin?.publish.begun.types?.[origin.index];
  }

  /** `rule` is what the content breaks if another stands there. */
  #place(log: EpochLog, seq: number, content: string, rule: Rule, witness: string): void {
    const before = log.contentBySeq.get(seq);
    if (before === content) return;
    const place = { epoch: log.epoch, seq, witness };
    if (before !== undefined) {
      this.report(rule, `two contents: ${excerpt(before)} and ${excerpt(content)}`, place);
      return;
    }
    log.contentBySeq.set(seq, content);
    if (log.endedAt !== null && seq > log.endedAt)
      this.report('G6', `beyond ${log.endedAt}, where the stream was closed`, place);
    if (this.#origins !== null) this.#judgeOrigin(log, seq, content, place);
  }

  #judgeOrigin(log: EpochLog, seq: number, content: string, place: Place): void {
    const origin = this.#origins?.get(content);
    if (origin === undefined) {
      this.report('G4', `nobody published ${excerpt(content)}`, place);
    } else if (origin.at !== null) {
      const { epoch, seq: twin } = origin.at;
      this.report('G4', `published once, but stands at ${epoch}.${twin} too`, place);
    } else {
      origin.at = { epoch: log.epoch, seq };
      const { absent } = origin.publish;
      if (absent !== null) this.report('G4', `${absent}, and stands there: ${excerpt(content)}`, place);
      else if (this.#isTorn(log, seq, origin)) this.report('G4', 'a batch stands in pieces', place);
    }
  }

  /** Whether a neighbour is known that cannot stand beside this event if batches are whole (contract 3.1). */
  #isTorn(log: EpochLog, seq: number, { publish, index }: Origin): boolean {
    const isLast = index === publish.begun.contents.length - 1;
    return [-1, 1].some((side) => {
      const neighbour = this.#originAt(log, seq + side);
      if (neighbour === undefined) return false;
      if (neighbour.publish === publish) return neighbour.index !== index + side;
      const { length } = neighbour.publish.begun.contents;
      return side === -1 ? index > 0 || neighbour.index !== length - 1 : !isLast || neighbour.index > 0;
    });
  }

  #originAt(log: EpochLog, seq: number): Origin | undefined {
    const content = log.contentBySeq.get(seq);
    return content === undefined ? undefined : this.#origins?.get(content);
  }

  /** What was acknowledged has a content by that; this finds what nobody saw although all was read. */
  #judgeAcked(log: EpochLog, from: number): void {
    if (log.ackedThrough < from || log.seenThrough >= log.ackedThrough) return;
    const place = { epoch: log.epoch, seq: log.ackedThrough, witness: 'all that was read' };
    this.report('G4', `acknowledged, but the stream ends at ${log.seenThrough}`, place);
  }
}

function excerpt(content: string): string {
  return JSON.stringify(content.length > 60 ? `${content.slice(0, 60)}…` : content);
}
