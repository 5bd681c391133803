import { type Check, range } from './check.js';
import { expectEqual } from './expect.js';
import { filledStream } from './filled-stream.js';
import { join } from './named-subscriber.js';

export const namedChecks: Check[] = [
  {
    section: '4.8',
    what: 'the server keeps the position of a named subscriber, from where it first joined, and moves it by no write',
    async run(target) {
      const { name } = await filledStream(target, 3);
      await join(target, name, 'a');
      await target.publishLines(name, ['4', '5']);
      for (const _time of range(1, 2)) {
        const again = await target.subscribe(name, { query: 'subscriber=a' });
        await again.untilEvents(2);
        again.close();
        expectEqual(again.seqs, [4, 5], 'the seqs without a cursor');
      }
    },
  },
  {
    section: '4.8',
    what: 'the cursor that it comes back with moves it forward, and a word does not move it back',
    async run(target) {
      const { name, epoch } = await filledStream(target, 6);
      await join(target, name, 'a', `${epoch}.4`);
      await join(target, name, 'a', 'earliest');
      const subscription = await target.subscribe(name, { query: 'subscriber=a' });
      await subscription.untilEvents(2);
      subscription.close();
      expectEqual(subscription.seqs, [5, 6], 'the seqs without a cursor');
    },
  },
  {
    section: '4.8',
    what: 'connections that share a name are each given everything from their own cursor',
    async run(target) {
      const { name, epoch } = await filledStream(target, 4);
      const both = await Promise.all(
        [1, 3].map((seq) =>
          target.subscribe(name, { query: 'subscriber=a', lastEventId: `${epoch}.${seq}` }),
        ),
      );
      await target.publish(name, 'new');
      await Promise.all(both.map((one) => one.until('the new event', () => one.seqs.at(-1) === 5)));
      expectEqual(
        both.map(({ seqs }) => seqs),
        [range(2, 5), range(4, 5)],
        'the seqs of both',
      );
      for (const one of both) one.close();
    },
  },
];
