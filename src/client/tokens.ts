/**
 * The text that a language model gives bit by bit, kept so that any number of readers follow it, from its beginning and
 * after any break.
 */

import { leavable } from './abortable.js';
import type { GaplessClient } from './client.js';
import { GaplessError } from './client-error.js';
import type { StreamEvent } from './event-data.js';

/** The event that says that there will be no more because the source failed. */
const FAILED = 'failed';

export interface PublishTokensOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Publishes each token as an event, in the order of the source and no faster than the server takes them, and then closes
 * the stream. When the source fails, or the signal ends it, readers are told so before the end.
 *
 * @throws what the source threw; the signal's reason; {@link GaplessError}
 */
export async function publishTokens(
  client: GaplessClient,
  name: string,
  tokens: AsyncIterable<string> | Iterable<string>,
  { signal }: PublishTokensOptions = {},
): Promise<void> {
  const publisher = client.publisher(name, { signal });
  try {
    await publisher.publishAll(tokens);
  } catch (error) {
    if (!(error instanceof GaplessError)) {
      // After all that came before, and also where the signal keeps the publisher from saying more.
      await publisher.flush().catch(() => undefined);
      // Where that is refused, what was wrong first is thrown all the same.
      await end(client, name, error).catch(() => undefined);
    }
    throw error;
  }
  await client.closeStream(name);
}

/**
 * The tokens of a stream until it is closed.
 *
 * @throws {GaplessError} `source_failed` where the source did; what a subscription throws.
 */
export function readTokens(
  client: GaplessClient,
  name: string,
  { cursor = 'earliest', signal }: { readonly cursor?: string; readonly signal?: AbortSignal } = {},
): AsyncGenerator<string, void, void> {
  const events = client.subscribe(name, { cursor, signal })[Symbol.asyncIterator]();
  return leavable(tokensOf(events), () => events.return().catch(() => undefined));
}

async function* tokensOf(
  events: AsyncGenerator<StreamEvent<string>, void, void>,
): AsyncGenerator<string, void, void> {
  for await (const { type, data } of events) {
    if (type === FAILED)
      throw new GaplessError('source_failed', String((JSON.parse(data) as Failure).message));
    yield data;
  }
}

/** Tells readers that there will be no more, and why. */
async function end(client: GaplessClient, name: string, error: unknown): Promise<void> {
  await client.publish(name, { message: messageOf(error) }, { type: FAILED });
  await client.closeStream(name);
}

interface Failure {
  readonly message: unknown;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
