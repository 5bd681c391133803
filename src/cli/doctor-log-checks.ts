/**
 * What is wrong with the NATS servers of a log that brokers share. Pure: a report in, findings out.
 */

import type { JetStreamReport, StoredLogReport } from '../storage/jetstream/jetstream-report.js';
import { AGREES_SINCE, isBefore, PURGES_SINCE } from '../storage/jetstream/server-version.js';
import type { Finding } from './doctor-checks.js';

const FILLED = 0.8;

export function ofLog(report: JetStreamReport, wanted: { replicas: number; stream: string }): Finding[] {
  const { servers, problem, log } = report;
  const found: Finding[] = [];
  const bad = (what: string, advice: string) => found.push({ level: 'bad', what, advice });
  for (const { address, problem } of servers) {
    if (problem === null) continue;
    bad(`the NATS server ${address} cannot be used: ${problem}`, 'start it, or see who may connect, and how');
  }
  if (problem !== null && servers.some((server) => server.problem === null)) {
    bad(
      `the log cannot be looked at: ${problem}`,
      'see whether JetStream is on, and most of the servers are up',
    );
  }
  if (log === null) {
    if (problem !== null) return found;
    const what = `there is no JetStream stream ${wanted.stream} yet`;
    return [...found, { level: 'warn', what, advice: 'the first broker makes it' }];
  }
  return [...found, ...ofStored(log, wanted.replicas), ...ofVersions(report, log)];
}

function ofStored(log: StoredLogReport, wanted: number): Finding[] {
  const { replicas, leader, followers, bytes, bytesMax, lossySetting } = log;
  const found: Finding[] = [];
  const bad = (what: string, advice: string) => found.push({ level: 'bad', what, advice });
  const warn = (what: string, advice: string) => found.push({ level: 'warn', what, advice });
  if (lossySetting !== null)
    bad(`the log lets events go by itself: ${lossySetting}`, 'no broker starts: undo it');
  if (replicas > 1 && (leader ?? '') === '') {
    bad('no server leads the log, so nothing is published', 'most of the servers have to be up');
  }
  for (const { name, current, behind } of followers) {
    if (current && behind === 0) continue;
    bad(`${name} is not current, ${behind} operations behind`, 'stop no other server meanwhile');
  }
  if (replicas !== wanted) {
    const advice = 'where it is there already, stop the brokers and change the JetStream stream';
    warn(`the log is kept by ${replicas} servers, and logReplicas is ${wanted}`, advice);
  }
  if (bytesMax !== null && bytes > FILLED * bytesMax) {
    warn(
      `the log has ${bytes} bytes of ${bytesMax}`,
      'raise logBytesMax, or keep less: full, it takes no publish',
    );
  }
  return found;
}

function ofVersions(
  { servers }: JetStreamReport,
  { replicas, leader, followers }: StoredLogReport,
): Finding[] {
  if (replicas === 1) return [];
  const found: Finding[] = [];
  const warn = (what: string, advice: string) => found.push({ level: 'warn', what, advice });
  const versions = new Map(
    servers.flatMap(({ name, version }) => (version === null ? [] : [[name, version]])),
  );
  const unknown = [leader, ...followers.map(({ name }) => name)].filter(
    (name) => name && !versions.has(name),
  );
  if (unknown.length > 0) {
    warn(
      `nobody knows the version of ${unknown.join(', ')}`,
      'name all servers in log to have them looked at',
    );
  }
  const each = [...new Set(versions.values())].sort();
  if (each.length > 1)
    warn(`servers of several versions: ${each.join(', ')}`, 'bring all to one of them soon');
  for (const version of each) {
    if (isBefore(version, PURGES_SINCE)) {
      const advice = 'go to 2.10.23 or later; until then brokers delete messages one by one';
      warn(`NATS ${version} loses the log when it starts again after a purge`, advice);
    } else if (isBefore(version, AGREES_SINCE)) {
      warn(`NATS ${version}, with several servers`, '2.10.23 or later is advised');
    }
  }
  return found;
}
