import type { Answer } from './answer.js';
import { MEDIA, type Target } from './target.js';

/** POST of contract 7, whatever comes of it. */
export function acknowledge(target: Target, stream: string, body: object): Promise<Answer> {
  return target.exchange({
    path: `/v1/streams/${stream}/ack`,
    headers: { 'Content-Type': MEDIA.json },
    body: JSON.stringify(body),
  });
}

/** Subscribes under a name and leaves again. */
export async function join(
  target: Target,
  stream: string,
  subscriber: string,
  lastEventId?: string,
): Promise<void> {
  const subscription = await target.subscribe(stream, { query: `subscriber=${subscriber}`, lastEventId });
  await subscription.untilPrimed();
  subscription.close();
}
