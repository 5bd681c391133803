import type { Prng } from '../support/prng.js';
import { Connection, type ConnectionTraits, type Peer } from './connection.js';
import type { Request } from './http-library.js';
import type { Judge } from './judge.js';
import { Machine } from './machine.js';
import { type CommitFaults, Disk } from './medium.js';
import type { SimulationOptions } from './options.js';
import type { Schedule, Thread } from './schedule.js';

const RESTART_MS_MAX = 500;

/** What is outside of the broker: its machine, its medium, and the network. */
export class World implements CommitFaults {
  /** Whether there are faults at the moment. */
  on = true;
  readonly schedule: Schedule;
  readonly prng: Prng;
  readonly options: SimulationOptions;
  readonly judge: Judge;
  readonly outside: Thread;
  readonly streams: readonly string[];
  /** What ends the broker: not in the midst of a step, for the step would go on. */
  readonly #fate: Thread = { name: 'fate', alive: true, lateMsMax: 0, hasPromises: false, interrupts: false };
  readonly #disk = new Disk();
  /** Those of this start of the broker. */
  readonly #connections = new Set<Connection>();
  #machine: Machine;
  /** Whether the broker is up, and whether it is of use: its log is not broken. */
  #isUp = true;
  #isOfUse = true;

  constructor(parts: {
    schedule: Schedule;
    prng: Prng;
    options: SimulationOptions;
    judge: Judge;
    outside: Thread;
  }) {
    this.schedule = parts.schedule;
    this.prng = parts.prng;
    this.options = parts.options;
    this.judge = parts.judge;
    this.outside = parts.outside;
    this.streams = Array.from({ length: parts.options.streams }, (_, index) => `s${index}`);
    this.#machine = this.#start();
    if (this.options.ttlMs > 0) for (const stream of this.streams) this.#mayAlwaysBeginAnew(stream);
    if (this.options.crashEveryMs > 0) this.#scheduleCrash();
  }

  /** The faults are over. A broker whose log is of no use any more is started again, as its operator would. */
  heal(): void {
    this.on = false;
    for (const connection of this.#connections) connection.hurry();
    if (this.#isUp && !this.#isOfUse) this.#crash(false);
  }

  broke(): void {
    this.#isOfUse = false;
  }

  /** Has something happen outside, later. */
  after(delayMs: number, run: () => void): void {
    this.schedule.after(this.outside, delayMs, run);
  }

  /** Whether something of this chance happens; nothing does when the faults are over. */
  happens(chance: number): boolean {
    return chance > 0 && this.on && this.prng.chance(chance);
  }

  /** Sends a request on a connection of its own to some edge. Null: nobody listens. */
  request(request: Request, peer: Peer): Connection | null {
    const { edges } = this.#machine;
    if (edges.length === 0) return null;
    const server = this.prng.pick(edges);
    const connection = new Connection({
      schedule: this.schedule,
      prng: this.prng,
      traits: this.#traits(),
      server: server.thread,
      outside: this.outside,
      peer,
      closed: () => server.disconnected(),
    });
    this.#connections.add(connection);
    if (!this.on) connection.hurry();
    this.schedule.after(server.thread, this.prng.below(this.options.latencyMs + 1), () => {
      if (!connection.clientOpen && this.prng.chance(0.5)) return;
      server.connected();
      server.receive(connection, request);
    });
    return connection;
  }

  #traits(): ConnectionTraits {
    const { windowBytesMin, windowBytesMax, readBytesMax, readPauseMs, latencyMs, saysFullLate } =
      this.options;
    const { prng } = this;
    return {
      windowBytes: prng.chance(0.5) ? windowBytesMin : prng.between(windowBytesMin, windowBytesMax),
      readBytesMax: prng.chance(0.5) ? readBytesMax : 64 * 1024,
      readPauseMs: prng.chance(0.5) ? readPauseMs : 0,
      latencyMs,
      saysFullLate,
    };
  }

  #start(): Machine {
    const { schedule, prng, options } = this;
    this.#isUp = true;
    this.#isOfUse = true;
    return new Machine({ schedule, prng, options, disk: this.#disk, faults: this });
  }

  #scheduleCrash(): void {
    const { crashEveryMs } = this.options;
    this.schedule.after(this.#fate, crashEveryMs / 2 + this.prng.below(crashEveryMs), () => {
      if (!this.on) return;
      // One that is down already would be started twice, and two would write to one log.
      if (this.#isUp) {
        if (this.happens(this.options.stopChance)) this.#stop();
        else this.#crash(this.prng.chance(this.options.machineCrashChance));
      }
      this.#scheduleCrash();
    });
  }

  /** The broker is told to end, and started again when it has. */
  #stop(): void {
    const machine = this.#machine;
    machine.stop(() =>
      this.schedule.after(this.#fate, 0, () => {
        if (machine === this.#machine && this.#isUp) this.#crash(false);
      }),
    );
  }

  /** The process is killed, or the machine goes down with it. */
  #crash(isMachine: boolean): void {
    const { durable, fsyncInterval } = this.options;
    this.#isUp = false;
    this.#machine.kill();
    const isPeerTold = !isMachine;
    for (const connection of this.#connections) connection.crash(isPeerTold);
    this.#connections.clear();
    if (isMachine) this.#disk.powerOff(this.prng.chance(0.5));
    if (!durable || (isMachine && fsyncInterval)) {
      for (const stream of this.streams) this.judge.mayBeginAnew(stream);
    }
    this.#machine.edges.length = 0;
    this.after(this.prng.below(RESTART_MS_MAX), () => {
      this.#machine = this.#start();
    });
  }

  #mayAlwaysBeginAnew(stream: string): void {
    for (let i = 0; i < 1000; i++) this.judge.mayBeginAnew(stream);
  }
}
