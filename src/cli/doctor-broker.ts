/**
 * What a running broker says of itself, as far as it lets whoever asks: whether it is alive and ready, its metrics, and
 * where its streams stand. No event is read.
 */

import { withoutSecrets } from './without-secrets.js';

export interface BrokerReport {
  readonly url: string;
  /** What kept it from being asked; null: nothing. */
  readonly problem: string | null;
  /** Status of each path; absent where there was no answer. */
  readonly status: Readonly<Record<string, number>>;
  /** Series of the broker and of its process, by name and labels; none where that was not allowed. */
  readonly metrics: Readonly<Record<string, number>>;
  /** The first streams by name, as the list has them; none where that was not allowed. */
  readonly streams: readonly Readonly<Record<string, unknown>>[];
}

const TIMEOUT_MS = 3000;
/** Streams whose positions are in the report. */
const STREAMS_MAX = 50;
/** Of a stream: where it stands, and nothing of who reads it. */
const POSITIONS = [
  'name',
  'epoch',
  'floor',
  'logFloor',
  'committed',
  'head',
  'bytes',
  'subscribers',
  'closed',
];
const SAMPLE = /^((?:gapless|process)_[a-z0-9_]+(?:\{[^}]*\})?) (\S+)$/;

/** @param asked `url` as it was given. */
export async function askBroker(asked: { url: string; token: string }): Promise<BrokerReport> {
  const status: Record<string, number> = {};
  const get = async (path: string): Promise<string> => {
    const target = new URL(path, asked.url);
    // They are no bearer token, and a URL with them is not fetched.
    target.username = '';
    target.password = '';
    const response = await fetch(target, {
      headers: { Accept: '*/*', ...(asked.token === '' ? {} : { Authorization: `Bearer ${asked.token}` }) },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    status[path.replace(/\?.*/, '')] = response.status;
    const text = await response.text();
    return response.ok ? text : '';
  };
  const url = withoutSecrets(asked.url);
  try {
    await get('/healthz');
    await get('/readyz');
    const metrics = seriesOf(await get('/metrics'));
    const streams = positionsOf(await get(`/v1/streams?limit=${STREAMS_MAX}`));
    return { url, problem: null, status, metrics, streams };
  } catch (error) {
    const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException };
    // What went wrong may be told with the address.
    const problem = withoutSecrets(cause?.code ?? cause?.message ?? message);
    return { url, problem, status, metrics: {}, streams: [] };
  }
}

function seriesOf(text: string): Record<string, number> {
  const samples = text.split('\n').map((line) => SAMPLE.exec(line));
  return Object.fromEntries(
    samples.flatMap((match) => (match?.[1] === undefined ? [] : [[match[1], Number(match[2])]])),
  );
}

function positionsOf(text: string): Record<string, unknown>[] {
  if (text === '') return [];
  const { streams } = JSON.parse(text) as { streams: Record<string, unknown>[] };
  return streams.map((state) => Object.fromEntries(POSITIONS.map((member) => [member, state[member]])));
}
