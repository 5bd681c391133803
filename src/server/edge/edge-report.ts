/**
 * What an edge says of itself when the coordinator asks: how far readers are behind. Cold path: for metrics, and for
 * people who look on.
 */

import type { StreamLag } from '../../broker/lag.js';
import type { ReaderState, Readers } from '../../broker/readers.js';
import type { Subscription } from '../../broker/subscription.js';
import { PRINCIPAL_LENGTH_MAX } from '../../transport/console/activity.js';
import type { EdgeServices } from '../../transport/edge-services.js';
import { MultiSink } from '../../transport/subscribe/multi-connection.js';
import { WebSocketSink } from '../../transport/websocket/websocket-sink.js';

/** What can be asked for, and what is said. */
export interface Reports {
  /** Of these streams, where they have readers here; null: of all that have. */
  lags: { ask: { names: readonly string[] | null }; report: StreamLag[] };
  readers: { ask: { name: string; epoch: string; countMax: number }; report: Readers };
}

export type ReportTopic = keyof Reports;

type Reporters = {
  [T in ReportTopic]: (ask: Reports[T]['ask']) => Reports[T]['report'];
};

export function reporters({ broker, sessions }: EdgeServices): Reporters {
  const stateOf = (subscription: Subscription): ReaderState => {
    const { cursor, delivered, sink, state } = subscription;
    return {
      by: sink instanceof WebSocketSink ? 'websocket' : sink instanceof MultiSink ? 'sse-many' : 'sse',
      // In a list of readers nobody has ended.
      state: state as ReaderState['state'],
      written: cursor,
      delivered,
      principal: (sessions.principalOf(subscription)?.id ?? '').slice(0, PRINCIPAL_LENGTH_MAX),
    };
  };
  return {
    lags: ({ names }) => broker.lags(names),
    readers: ({ name, epoch, countMax }) => {
      const { slowest, count } = broker.readers(name, epoch, countMax);
      return { readers: slowest.map(stateOf), count };
    },
  };
}
