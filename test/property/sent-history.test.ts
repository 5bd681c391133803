import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { beginConnection, type KeptCursor, positionsAt } from '#gapless/core/kept-cursor.js';
import { SentHistory, type SentPosition } from '#gapless/core/sent-history.js';

const EPOCH = 'abcdefghij';

/** What a connection may send: of the stream of this number. */
type Sent = { kind: 'run' | 'skip' | 'end' | 'drop' | 'remake'; stream: number; length: number };

const sent: fc.Arbitrary<Sent> = fc.record({
  kind: fc.constantFrom('run', 'run', 'run', 'skip', 'end', 'drop', 'remake'),
  stream: fc.integer({ min: 0, max: 4 }),
  length: fc.integer({ min: 1, max: 6 }),
});

/** A history, and beside it all positions, written out after each id. */
class Pair {
  readonly told = new Map<number, ReadonlyMap<string, SentPosition>>();
  readonly history: SentHistory;
  readonly #tracks = new Map<string, number>();
  readonly #seqs = new Map<string, number>();
  /** That a stream has ended is known also when another one of its name has come and gone. */
  readonly #ended = new Map<string, SentPosition>();
  #now: Map<string, SentPosition>;
  #epochs = 0;

  constructor(history: SentHistory, positions: ReadonlyMap<string, SentPosition>) {
    this.history = history;
    this.#now = new Map(positions);
    for (const [track, { name, isEnded }] of history.data.tracks) {
      if (isEnded) this.#ended.set(name, positions.get(name) as SentPosition);
      else this.#tracks.set(name, track);
      this.#seqs.set(name, positions.get(name)?.seq ?? 0);
    }
    this.#tell(history.data.count);
  }

  send({ kind, stream, length }: Sent): void {
    const name = `s${stream}`;
    const track = this.#tracks.get(name) ?? this.#join(name);
    const { epoch } = this.history.data.tracks.get(track) as { epoch: string };
    const moveTo = (seq: number): void => {
      this.#seqs.set(name, seq);
      const count = this.history.move(track, seq);
      this.#now.set(name, { epoch, seq, ended: false });
      this.#tell(count);
    };
    const seq = this.#seqs.get(name) as number;
    switch (kind) {
      case 'run':
        for (let next = seq + 1; next <= seq + length; next++) moveTo(next);
        return;
      case 'skip':
        return moveTo(seq + 1 + length);
      case 'end': {
        const count = this.history.end(track);
        this.#ended.set(name, { epoch, seq: 0, ended: true });
        this.#now.set(name, this.#ended.get(name) as SentPosition);
        this.#tracks.delete(name);
        return this.#tell(count);
      }
      case 'drop':
      case 'remake': {
        const count = this.history.drop(track);
        const ended = this.#ended.get(name);
        if (ended === undefined) this.#now.delete(name);
        else this.#now.set(name, ended);
        this.#tracks.delete(name);
        this.#tell(count);
        if (kind === 'remake') this.#join(name);
      }
    }
  }

  #join(name: string): number {
    const track = this.history.join(name, `${EPOCH}${this.#epochs++}`);
    this.#tracks.set(name, track);
    this.#seqs.set(name, 0);
    return track;
  }

  #tell(count: number): void {
    assert.equal(this.told.has(count), false);
    this.told.set(count, new Map(this.#now));
  }
}

/** Of a stream that has ended only the epoch counts. */
function shown(positions: ReadonlyMap<string, SentPosition> | null): unknown {
  if (positions === null) return null;
  const entries = [...positions].map(([name, { epoch, seq, ended }]) => [name, epoch, ended ? 'ended' : seq]);
  return entries.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

function play(pair: Pair, script: readonly Sent[]): void {
  for (const each of script) pair.send(each);
}

it('4.11 the positions after each id are those that were sent, or are said not to be known (I2)', () => {
  fc.assert(
    fc.property(fc.array(sent, { maxLength: 60 }), fc.integer({ min: 2, max: 40 }), (script, stepsMax) => {
      const pair = new Pair(SentHistory.begin(1, new Map(), stepsMax), new Map());
      play(pair, script);
      const { history } = pair;
      const { baseCount, count, counts } = history.data;
      assert.ok(counts.length <= stepsMax);
      for (const [id, positions] of pair.told) {
        assert.deepEqual(shown(history.at(id)), id < baseCount ? null : shown(positions), `id ${id}`);
      }
      assert.equal(pair.told.size, count);
      assert.equal(history.at(count + 1), null);
      if (baseCount > 1) assert.ok(counts.length >= Math.floor((stepsMax * 3) / 4));
      // It travels between threads.
      assert.deepEqual(
        shown(new SentHistory(structuredClone(history.data)).at(count)),
        shown(history.at(count)),
      );
    }),
  );
});

it('4.11 streams that come and go leave nothing behind once their steps are forgotten', () => {
  const history = SentHistory.begin(1, new Map(), 8);
  for (let round = 0; round < 1000; round++) {
    const track = history.join(`s${round}`, EPOCH);
    history.move(track, 1);
    history.end(track);
    history.forgetEnded(() => false);
  }
  assert.ok(history.data.tracks.size <= 8);
  assert.equal(history.streamCount, 0);
});

it('4.11 over any number of connections an id names one position, and those of the last two are known', () => {
  const connection = fc.record({ script: fc.array(sent, { maxLength: 12 }), back: fc.nat() });
  fc.assert(
    fc.property(fc.array(connection, { minLength: 1, maxLength: 8 }), (connections) => {
      let kept: KeptCursor | null = null;
      let from = 0;
      let start: ReadonlyMap<string, SentPosition> = new Map();
      let before = new Map<number, ReadonlyMap<string, SentPosition>>();
      for (const { script, back } of connections) {
        const begun: ReturnType<typeof beginConnection> = beginConnection(kept, from, start);
        const pair = new Pair(begun.history, start);
        play(pair, script);
        kept = structuredClone(begun.cursor);
        const known = new Map([...before, ...pair.told]);
        assert.equal(known.size, before.size + pair.told.size, 'an id was given twice');
        for (const [id, positions] of known) {
          assert.deepEqual(shown(positionsAt(kept, id)), shown(positions), `id ${id}`);
        }
        // It comes back with any id of the two; the connection of that, and the new one, are known then.
        const ids = [...known.keys()];
        from = ids[back % ids.length] as number;
        start = new Map(positionsAt(kept, from));
        before = pair.told.has(from) ? pair.told : before;
      }
    }),
  );
});
