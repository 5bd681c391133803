import { type Check, type Section } from './check.js';
import { expectEqual, expectProblem, expectStatus } from './expect.js';
import { filledStream } from './filled-stream.js';
import { acknowledge, join } from './named-subscriber.js';

const checks: Check[] = [
  {
    section: '7',
    what: 'an acknowledgement moves forward only, and the answer says what is known',
    async run(target) {
      const { name, epoch } = await filledStream(target, 6);
      await join(target, name, 'a', `${epoch}.0`);
      for (const [seq, known] of [
        [4, 4],
        [2, 4],
        [6, 6],
      ] as const) {
        const answer = await acknowledge(target, name, { subscriber: 'a', cursor: `${epoch}.${seq}` });
        expectStatus(answer, 200, `acknowledging ${seq}`);
        expectEqual(answer.json(), { subscriber: 'a', acked: `${epoch}.${known}` }, 'the answer');
      }
      const state = (await target.get(`/v1/streams/${name}/state`)).json() as { named: unknown };
      expectEqual(state.named, [{ name: 'a', acked: `${epoch}.6`, lag: 0 }], 'named of the state');
    },
  },
  {
    section: '7',
    what: 'beyond the newest event it is 400 ack_ahead, of another epoch 410, a word 400 malformed, of nobody 404',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      await join(target, name, 'a');
      const ask = (cursor: string, subscriber = 'a') => acknowledge(target, name, { subscriber, cursor });
      const ahead = expectProblem(await ask(`${epoch}.4`), 400, 'ack_ahead', 'beyond the newest');
      expectEqual(ahead.head, `${epoch}.3`, 'the head');
      const other = expectProblem(await ask('zzzzzzzzzz.1'), 410, 'resume_unavailable', 'another epoch');
      expectEqual(other.reason, 'epoch_changed', 'the reason');
      expectProblem(await ask('latest'), 400, 'malformed', 'a word');
      expectProblem(await ask(`${epoch}.1`, 'nobody'), 404, 'subscriber_not_found', 'one that never joined');
    },
  },
  {
    section: '7',
    what: 'one that is forgotten joins like one that never was',
    async run(target) {
      const { name } = await filledStream(target, 3);
      await join(target, name, 'a');
      await target.publish(name, 'four');
      const path = `/v1/streams/${name}/subscribers/a`;
      expectStatus(await target.exchange({ method: 'DELETE', path }), 204, 'forgetting');
      expectProblem(
        await target.exchange({ method: 'DELETE', path }),
        404,
        'subscriber_not_found',
        'once more',
      );
      const subscription = await target.subscribe(name, { query: 'subscriber=a' });
      await subscription.untilPrimed();
      await target.publish(name, 'five');
      await subscription.untilEvents(1);
      subscription.close();
      expectEqual(subscription.seqs, [5], 'the seqs after it was forgotten');
    },
  },
];

export const acknowledgements: Section = { number: '7', title: 'Acknowledge', checks };
