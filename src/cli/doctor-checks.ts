/**
 * What is wrong, or will be, by what was found out. Pure: facts in, findings out.
 */

import type { Config } from '../config/schema.js';
import type { JetStreamReport } from '../storage/jetstream/jetstream-report.js';
import type { BrokerReport } from './doctor-broker.js';
import type { Disk, Limits, Machine } from './doctor-facts.js';
import { ofLog } from './doctor-log-checks.js';

export interface Finding {
  /** `bad` is wrong now; `warn` will be under load. */
  readonly level: 'bad' | 'warn';
  readonly what: string;
  readonly advice: string;
}

export interface Facts {
  readonly config: Config;
  readonly limits: Limits;
  readonly machine: Machine;
  readonly kernel: Readonly<Record<string, string>>;
  /** Null without a durable log. */
  readonly disk: Disk | null;
  /** Null without a log that brokers share. */
  readonly sharedLog: JetStreamReport | null;
  readonly broker: BrokerReport;
}

const DESCRIPTORS_LOW = 10_000;
/** What the HTTP library asks of the kernel for connections that wait to be accepted. */
const BACKLOG = 512;
const DISK_FREE_LOW = 2 ** 30;
/** Of tmpfs and ramfs, which a restart of the machine empties, and of NFS and SMB, on which the lock does not hold. */
const MEMORY_FILE_SYSTEMS = ['0x1021994', '0x858458f6'];
const NETWORK_FILE_SYSTEMS = ['0x6969', '0xff534d42', '0xfe534d42', '0x517b'];

export function findingsOf(facts: Facts): Finding[] {
  const { sharedLog, config } = facts;
  const wanted = { replicas: config.logReplicas, stream: config.logStream };
  const log = sharedLog === null ? [] : ofLog(sharedLog, wanted);
  return [...ofLimits(facts), ...ofMemory(facts), ...ofDisk(facts), ...log, ...ofBroker(facts)];
}

function ofLimits({ limits, kernel }: Facts): Finding[] {
  const found: Finding[] = [];
  const { descriptorsSoft, connectionsInUseMax } = limits;
  if (descriptorsSoft !== null && descriptorsSoft < DESCRIPTORS_LOW) {
    found.push({
      level: 'warn',
      what: `${descriptorsSoft} open files: at most ${connectionsInUseMax} connections in use`,
      advice: 'raise the limit of open files (ulimit -n, or LimitNOFILE of the service)',
    });
  }
  const somaxconn = Number(kernel['net/core/somaxconn'] ?? BACKLOG);
  if (somaxconn < BACKLOG) {
    found.push({
      level: 'warn',
      what: `net.core.somaxconn is ${somaxconn}: when many come at once, some wait for a second or more`,
      advice: `set it to ${BACKLOG} or above`,
    });
  }
  return found;
}

function ofMemory({ config, machine }: Facts): Finding[] {
  const limit = machine.memoryLimitBytes ?? machine.memoryBytes;
  if (config.memory < 0.75 * limit) return [];
  const what = `memory is ${config.memory} bytes of ${limit}`;
  return [{ level: 'bad', what, advice: 'lower it: the process needs memory beside that for events' }];
}

function ofDisk({ disk }: Facts): Finding[] {
  if (disk === null) return [];
  if (disk.problem !== null) {
    const what = `the data directory cannot be looked at: ${disk.problem}`;
    return [{ level: 'warn', what, advice: 'it is made at the first start; else see its owner and mode' }];
  }
  const found: Finding[] = [];
  if ((disk.freeBytes ?? 0) < DISK_FREE_LOW) {
    const what = `${disk.freeBytes} bytes are left on the disk of the durable log`;
    found.push({ level: 'bad', what, advice: 'make space, or keep less: see logBytesMax' });
  }
  if (MEMORY_FILE_SYSTEMS.includes(disk.type ?? '')) {
    const what = 'the data directory is in memory: a restart of the machine, or of the container, loses it';
    found.push({ level: 'warn', what, advice: 'put it on a disk' });
  }
  if (NETWORK_FILE_SYSTEMS.includes(disk.type ?? '')) {
    const what = 'the data directory is on a network: two processes may both believe to have it';
    found.push({ level: 'bad', what, advice: 'put it on a disk of this machine' });
  }
  return found;
}

function ofBroker({ broker }: Facts): Finding[] {
  const { url, problem, status, metrics } = broker;
  if (problem !== null) {
    return [
      {
        level: 'warn',
        what: `no broker answers at ${url}: ${problem}`,
        advice: 'start it, or name it with --url',
      },
    ];
  }
  const found: Finding[] = [];
  if (status['/readyz'] !== 200) {
    found.push({
      level: 'bad',
      what: 'the broker is not ready',
      advice: 'it drains: send clients elsewhere',
    });
  }
  if (status['/metrics'] === 401 || status['/metrics'] === 403) {
    const advice = 'use GAPLESS_TOKEN, with the rights metrics and admin';
    found.push({ level: 'warn', what: 'the broker shows no metrics without a token that may', advice });
  }
  for (const [series, advice] of [
    ['gapless_seam_violations_total', 'report it, with the log: it is a bug of the broker'],
    [
      'gapless_log_fault',
      'publishing is refused: 1 is a full disk or log, 2 another failure; the log lines say which',
    ],
    [
      'gapless_connections_dropped_total',
      'connections were closed for want of descriptors: raise their limit',
    ],
    ['gapless_subscribers_overtaken_total', 'readers were slower than retention allows: keep more'],
  ] as const) {
    const value = metrics[series] ?? 0;
    if (value > 0) found.push({ level: 'bad', what: `${series} is ${value}`, advice });
  }
  return found;
}
