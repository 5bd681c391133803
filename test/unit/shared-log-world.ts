import assert from 'node:assert/strict';
import { parseCursor } from '#gapless/core/cursor.js';
import { KEY, PRODUCER } from '#gapless/core/producer-record.js';
import type { StreamConfig } from '#gapless/core/retention.js';
import { LogError } from '#gapless/storage/event-log.js';
import type { Prng } from '../support/prng.js';
import { DEFAULTS, type ReplicaStage } from './replica-stage.js';
import { end, SharedLogBrokers, SKEW_MS } from './shared-log-brokers.js';
import { SharedLogWitness } from './shared-log-witness.js';

/** Steps of each client between two looks at everything. */
const STEPS = 25;

/** How long a producer is known wherever it asks. */
const KNOWN_MS = 20_000;
/** Named subscribers of each stream. */
const NAMES = ['ada', 'bob'];

/** Where a client is with a stream, as a producer. */
interface Position {
  readonly digest: string;
  epoch: number;
  seq: number;
  last: { seq: number; lines: string[]; placed: { epoch: string; first: number }; atMs: number } | null;
}

type Client = Map<string, Position>;

/** Several brokers over one log, clients of all of them, and whatever may go wrong, as a seed says. */
export class SharedLogWorld {
  readonly #prng: Prng;
  readonly #loses: boolean;
  readonly #streams = new Map<string, { config: StreamConfig; mayGo: boolean }>();
  readonly #witness = new SharedLogWitness();
  readonly #brokers: SharedLogBrokers;
  readonly #clients: Client[];
  #lines = 0;

  /** @param loses whether the log may also lose what is newest, or all. */
  constructor(prng: Prng, { loses }: { loses: boolean }) {
    this.#prng = prng;
    this.#loses = loses;
    const retention = (kept: Partial<StreamConfig['retention']>) => ({ ...DEFAULTS.retention, ...kept });
    const overflow = (): StreamConfig['overflow'] => prng.pick(['evict', 'reject']);
    for (const [name, config] of [
      ['all', {}],
      ['events', { overflow: overflow(), retention: retention({ events: prng.between(3, 20) }) }],
      ['bytes', { overflow: overflow(), retention: retention({ bytes: prng.between(100, 800) }) }],
      ['age', { retention: retention({ ageMs: prng.between(5, 40) * 1000 }) }],
      ['ttl', { ttlMs: prng.between(30, 90) * 1000 }],
    ] as const) {
      const mayGo = name === 'ttl' || prng.chance(0.5);
      this.#streams.set(name, { config: { ...DEFAULTS, ...config }, mayGo });
    }
    this.#brokers = new SharedLogBrokers(prng, [...this.#streams.keys()]);
    for (const [name, { mayGo }] of this.#streams) if (mayGo) this.#witness.mayGo(name);
    this.#clients = ['a', 'b', 'c', 'd'].map(
      (name) =>
        new Map(
          [...this.#streams.keys()].map((stream) => [
            stream,
            { digest: name.padEnd(32, '0'), epoch: 0, seq: 0, last: null },
          ]),
        ),
    );
  }

  async run(rounds: number): Promise<void> {
    const brokers = this.#brokers;
    await brokers.begin();
    for (const [name, { config }] of this.#streams) await brokers.any().replication.put(name, config);
    for (let round = 1; round <= rounds; round++) {
      brokers.letLoose();
      await Promise.all(this.#clients.map((client) => this.#live(client)));
      if (round === rounds || this.#prng.chance(0.5)) brokers.medium.putAllLate();
      await brokers.calmDown();
      await this.#look();
      brokers.goOn();
      await this.#between();
    }
  }

  async #live(client: Client): Promise<void> {
    const prng = this.#prng;
    for (let step = 0; step < STEPS; step++) {
      this.#brokers.check();
      this.#brokers.later(prng.below(400));
      const name = prng.pick([...this.#streams.keys()]);
      const act = prng.below(100);
      if (act < 50) await this.#publish(name, client.get(name) as Position);
      else if (act < 60) await this.#read(name);
      else if (act < 80) await this.#acknowledge(name);
      else if (act < 90) this.#brokers.sweep(this.#brokers.any());
      else if (act < 93) await this.#change(name);
      else if (act < 98) this.#brokers.disturb();
      else await this.#brokers.restart();
    }
  }

  async #publish(name: string, position: Position): Promise<void> {
    const prng = this.#prng;
    const by = prng.pick(['nobody', 'producer', 'producer', 'producer again', 'key'] as const);
    const again = by === 'producer again' && this.#isKnown(position) ? position.last : null;
    const lines =
      again?.lines ?? Array.from({ length: prng.between(1, 3) }, () => `${name} ${++this.#lines}`);
    const { digest, epoch } = position;
    const seq = again?.seq ?? position.seq;
    const isProducer = by.startsWith('producer');
    const key = { kind: KEY, digest: `${this.#lines}`.padStart(32, '0'), epoch: 0, seq: 0 } as const;
    const producer = { kind: PRODUCER, digest, epoch, seq } as const;
    const claim = isProducer ? producer : by === 'key' ? key : null;
    const beganAtMs = this.#brokers.nowMs;
    const codes = ['stream_not_found', 'stream_closed', 'producer_gap', 'backpressure', 'publish_forgotten'];
    let mayCome = false;
    for (;;) {
      const broker = this.#brokers.any();
      const closed = this.#witness.closedOf(broker.directory.find(name)?.epoch);
      const placed = await this.#brokers.ask(broker, codes, () =>
        broker.publish(name, lines, { claim, creates: false }),
      );
      if (placed === 'commit_unknown' || placed === 'log_unavailable') {
        mayCome ||= placed === 'commit_unknown';
        // Whoever has no name cannot ask once more.
        if (claim === null || this.#brokers.nowMs > beganAtMs + KNOWN_MS / 2)
          return this.#anew(position, isProducer);
        await new Promise((resolve) => setTimeout(resolve, 1));
        continue;
      }
      if (typeof placed === 'string')
        return this.#refused(placed, name, { position, isProducer, broker, mayCome });
      this.#witness.placed(name, placed, { lines, beganAtMs, closed });
      if (!isProducer) return;
      const { last } = position;
      if (again !== null && last?.placed.epoch === placed.epoch && this.#isKnown(position))
        assert.deepEqual([placed.first, placed.isDuplicate], [again.placed.first, true], 'I6');
      if (again === null) position.last = { seq, lines, placed, atMs: beganAtMs };
      position.seq = seq + 1;
      return;
    }
  }

  #isKnown({ last }: Position): boolean {
    return last !== null && last.atMs > this.#brokers.nowMs - KNOWN_MS;
  }

  #anew(position: Position, isProducer: boolean): void {
    if (!isProducer) return;
    position.epoch++;
    position.seq = 0;
    position.last = null;
  }

  async #refused(
    code: string,
    name: string,
    {
      position,
      isProducer,
      broker,
      mayCome,
    }: { position: Position; isProducer: boolean; broker: ReplicaStage; mayCome: boolean },
  ): Promise<void> {
    const stream = this.#streams.get(name);
    if (code === 'producer_gap' || code === 'publish_forgotten') {
      const epoch = broker.directory.find(name)?.epoch;
      const isKnown = position.last?.placed.epoch === epoch && this.#isKnown(position);
      assert.ok(!isKnown, `${name}: ${code} at ${position.seq} (I6)`);
    }
    if (code === 'stream_not_found') {
      assert.ok(stream?.mayGo, `${name} was not found`);
      await this.#brokers.ask(broker, [], () => broker.replication.put(name, stream?.config));
    }
    // What was under way of it may still come.
    this.#anew(position, isProducer && (mayCome || code !== 'backpressure'));
  }

  async #read(name: string): Promise<void> {
    const broker = this.#brokers.any();
    const stream = broker.replica.find(name);
    if (stream === undefined || stream.entry.floor > stream.entry.head) return;
    const seq = this.#prng.between(stream.entry.floor, stream.entry.head);
    try {
      const run = await broker.reader.read(stream, seq - 1, 50);
      // What it does not find has gone, or is said to have before long.
      if (run === null) return;
      const text = Buffer.from(run.frames).toString();
      for (const [, epoch, id, line] of text.matchAll(/id: ([a-z0-9]+)\.(\d+)\ndata: (.*)\n\n/g))
        this.#witness.read(epoch as string, Number(id), line as string);
    } catch (error) {
      assert.ok(error instanceof LogError, String(error));
    }
  }

  async #acknowledge(name: string): Promise<void> {
    const prng = this.#prng;
    const broker = this.#brokers.any();
    const who = prng.pick(NAMES);
    const told = this.#witness.toldOf(name, who);
    const epoch = broker.directory.find(name)?.epoch;
    if (told === null || told.epoch !== epoch || prng.chance(0.2)) {
      const start = prng.pick([null, 'earliest', 'latest'] as const);
      const joined = await this.#brokers.ask(broker, ['backpressure'], () =>
        broker.subscribers.join(name, who, start),
      );
      if (joined === null || typeof joined === 'string') return;
      const cursor = broker.takenUp.find({ stream: name, subscriber: who })?.stored.entry.acked;
      const known = cursor === undefined || cursor === null ? null : parseCursor(cursor);
      if (known === null) return;
      this.#witness.told(name, who, known, told);
      const floors = this.#brokers.all().map(({ replica }) => replica.find(name)?.entry.floor ?? 1);
      if (broker.directory.find(name)?.epoch === known.epoch && Math.max(...floors) <= known.seq + 1)
        this.#witness.holds(name, who, known.epoch);
      return;
    }
    const head = this.#witness.headOf(epoch);
    const codes = ['subscriber_not_found', 'resume_unavailable', 'backpressure', 'ack_ahead'];
    const cursor = { epoch, seq: prng.between(told.seq, Math.max(told.seq, head)) };
    const acked = await this.#brokers.ask(broker, codes, () =>
      broker.subscribers.acknowledge(name, who, cursor),
    );
    const now = broker.directory.find(name)?.epoch;
    if (acked === 'ack_ahead' || acked === 'subscriber_not_found')
      assert.notEqual(now, epoch, `${name} ${who} at ${cursor.seq}: ${acked}`);
    const known = acked === null ? null : parseCursor(acked);
    if (known !== null) this.#witness.told(name, who, known, told);
  }

  async #change(name: string): Promise<void> {
    if (this.#streams.get(name)?.mayGo !== true) return;
    const broker = this.#brokers.any();
    const { replication } = broker;
    if (this.#prng.chance(0.7)) {
      await this.#brokers.ask(broker, [], () => replication.remove(name));
    } else {
      const ref = await this.#brokers.ask(broker, [], () => replication.close(name));
      if (ref !== null && typeof ref !== 'string') this.#witness.ended(ref.epoch);
    }
  }

  /** All agree, whoever has started now too, and everything that is said to be there is. */
  async #look(): Promise<void> {
    const fresh = await this.#brokers.start();
    for (const [name, { config }] of this.#streams) {
      const stands = (broker: ReplicaStage) => {
        const state = broker.directory.state(name);
        if (state === null) return null;
        const { logFloor, head } = state.positions;
        return { epoch: state.ref.epoch, floor: logFloor, head, named: broker.named.list(state) };
      };
      const stand = stands(fresh);
      for (const broker of this.#brokers.all()) assert.deepEqual(stands(broker), stand, name);
      if (stand === null) {
        assert.ok(this.#streams.get(name)?.mayGo, `${name} is gone`);
        continue;
      }
      const { epoch, head } = stand;
      const floor = stand.floor as number;
      const data: string[] = [];
      for (let seq = head; seq >= floor; seq--) {
        const [line] = await fresh.data(name, seq - 1, 1);
        data.unshift(line as string);
      }
      assert.deepEqual(await this.#brokers.any().data(name, floor - 1), data, name);
      const acked = Object.fromEntries(stand.named.map(({ name, acked }) => [name, acked]));
      this.#witness.looked(
        name,
        { epoch, floor, head, data, acked },
        { config, oldMs: this.#brokers.nowMs + 2 * SKEW_MS },
      );
      for (const client of this.#clients) await this.#retry(fresh, name, client.get(name) as Position);
    }
    end(fresh);
  }

  /** Who published a moment ago is known to who has started now. */
  async #retry(fresh: ReplicaStage, name: string, position: Position): Promise<void> {
    const { digest, epoch, last } = position;
    if (last === null || !this.#isKnown(position) || fresh.directory.find(name)?.epoch !== last.placed.epoch)
      return;
    const claim = { kind: PRODUCER, digest, epoch, seq: last.seq } as const;
    const { first, isDuplicate } = await fresh.publish(name, last.lines, { claim, creates: false });
    assert.deepEqual([first, isDuplicate], [last.placed.first, true], 'I6');
  }

  /** What happens while nobody is served. */
  async #between(): Promise<void> {
    const prng = this.#prng;
    if (prng.chance(0.2)) {
      this.#brokers.medium.putAllLate();
      this.#brokers.later(prng.between(60_000, 120_000));
    }
    if (prng.chance(0.3)) {
      const [name, who] = [prng.pick([...this.#streams.keys()]), prng.pick(NAMES)];
      if (await this.#brokers.any().subscribers.forget(name, who)) this.#witness.forgotten(name, who);
    }
    if (this.#loses && prng.chance(0.2)) {
      this.#witness.lost();
      await this.#brokers.lose(prng.chance(0.3) ? Number.POSITIVE_INFINITY : prng.between(1, 10));
    }
  }
}
