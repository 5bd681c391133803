/**
 * Where streams stand, put together with what the edges say of their readers (contract 2.2, 2.5). Cold path.
 */

import type { Directory } from '../broker/directory.js';
import { largestLags } from '../broker/lag.js';
import type { NamedSubscribers } from '../broker/named-subscribers.js';
import { mergeReaders } from '../broker/readers.js';
import type { ListedStream, ReadStream } from '../transport/edge-services.js';
import type { Reports, ReportTopic } from './edge/edge-report.js';
import type { Questions } from './messages.js';

/** Asks all edges; null for one that is too busy to say. */
export type AskEdges = <T extends ReportTopic>(
  topic: T,
  ask: Reports[T]['ask'],
) => Promise<(Reports[T]['report'] | null)[]>;

export interface ReportSources {
  readonly directory: Pick<Directory, 'list' | 'state'>;
  readonly named: Pick<NamedSubscribers, 'lag' | 'list'>;
  readonly askEdges: AskEdges;
}

export async function listStreams(
  { directory, named, askEdges }: ReportSources,
  { lag, ...range }: Questions['list']['ask'],
): Promise<ListedStream[]> {
  const states = directory.list(range);
  if (!lag) return states.map((state) => ({ ...state, lags: null }));
  const reports = await askEdges('lags', { names: states.map(({ ref }) => ref.name) });
  const isWhole = !reports.includes(null);
  const largest = largestLags(reports.flatMap((report) => report ?? []));
  return states.map((state) => {
    const lag = isWhole ? (largest.get(state.ref.name) ?? 0) : null;
    return { ...state, lags: { lag, ackedLag: named.lag(state) } };
  });
}

/** Null: there is no such stream. */
export async function readStream(
  { directory, named, askEdges }: ReportSources,
  { name, countMax }: Questions['readers']['ask'],
): Promise<ReadStream | null> {
  const ref = directory.state(name)?.ref;
  if (ref === undefined) return null;
  const reports = await askEdges('readers', { name, epoch: ref.epoch, countMax });
  // After the readers: none of them is beyond these positions.
  const state = directory.state(name);
  if (state === null || state.ref.epoch !== ref.epoch) return null;
  const said = reports.filter((report) => report !== null);
  return {
    ...state,
    ...mergeReaders(said, countMax),
    named: named.list(state),
    isWhole: said.length === reports.length,
  };
}
