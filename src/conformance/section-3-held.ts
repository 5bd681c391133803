import type { Answer } from './answer.js';
import { type Check, range } from './check.js';
import { expect, expectEqual, expectProblem, expectStatus } from './expect.js';
import { acknowledge, join } from './named-subscriber.js';

/** A durable log refuses publishers after the commit that passed the limit. */
const PAST_MAX = 100;

export const heldChecks: Check[] = [
  {
    section: '3.6',
    what: 'a stream with overflow reject keeps what a named subscriber has not acknowledged, and refuses publishers, 429 backpressure',
    async run(target) {
      const { name, epoch } = await target.createStream({ retention: { events: 10 }, overflow: 'reject' });
      await join(target, name, 'a');
      let taken = 0;
      let refusal: Answer | null = null;
      while (refusal === null) {
        expect(taken < 20 + PAST_MAX, `${taken} publishes were taken`);
        const answer = await target.post(name, `event ${taken}`);
        if (answer.status === 200) taken++;
        else refusal = answer;
      }
      expectProblem(refusal, 429, 'backpressure', 'a publish too many');
      expect(refusal.header('retry-after') !== undefined, 'there is no Retry-After');
      expect(taken >= 10, `only ${taken} publishes were taken`);
      const subscription = await target.subscribe(name, { query: 'subscriber=a' });
      await subscription.untilEvents(taken);
      subscription.close();
      expectEqual(subscription.seqs, range(1, taken), 'the seqs of who was waited for');
      expectStatus(
        await acknowledge(target, name, { subscriber: 'a', cursor: `${epoch}.${taken}` }),
        200,
        'ack',
      );
      await target.publish(name, 'on');
    },
  },
];
