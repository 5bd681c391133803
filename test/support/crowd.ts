import { range } from './cursor.js';
import { freshStream } from './gapless-client.js';
import { SseSubscription } from './sse-client.js';

const SUBSCRIBERS = 40;

/** Subscribers whom a drain sends away one after the other, so that it takes its time: it ends with the last of them. */
export async function openCrowd(port: number): Promise<void> {
  const stream = freshStream('crowd');
  await Promise.all(range(1, SUBSCRIBERS).map(() => SseSubscription.open(port, stream)));
}
