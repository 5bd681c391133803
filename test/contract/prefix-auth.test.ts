import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { assertProblem, publish } from '../support/gapless-client.js';
import {
  askPrefix,
  assertUnknown,
  eventsOf,
  freshPrefix,
  openPrefix,
  refusedPrefix,
} from '../support/prefix-reader.js';
import { apiKey, bearer, Files, Issuer, keySetOf, nowSeconds } from '../support/tokens.js';

const files = new Files();
const issuer = await Issuer.create('HS256');
const [ada, bob] = [apiKey('ada', { subscribe: ['*'], publish: ['*'] }), apiKey('bob', { subscribe: ['*'] })];
const secured = [
  '--jwt-keys-file',
  files.write('keys.json', keySetOf(issuer)),
  '--api-keys-file',
  files.write('api-keys.json', JSON.stringify({ apiKeys: [ada.entry, bob.entry] })),
];

describeOnEdges('9.1 subscriptions by prefix', secured, (broker) => {
  const say = (stream: string, data: string): Promise<unknown> =>
    publish(broker.port, stream, data, undefined, bearer(ada.key));

  it('9.1 it is of the streams that the token may read, also of those that are made later', async () => {
    const prefix = freshPrefix();
    const headers = bearer(await issuer.grant({ subscribe: [`${prefix}mine-*`] }, { sub: 'carol' }));
    await say(`${prefix}mine-1`, 'one');
    await say(`${prefix}other-1`, 'not for her');
    const subscription = await openPrefix(broker.port, prefix, { headers, cursor: 'earliest' });
    await say(`${prefix}other-2`, 'nor this');
    await say(`${prefix}mine-2`, 'two');
    await subscription.untilEvents(2);
    assert.deepEqual(
      eventsOf(subscription).map(({ data }) => data),
      ['one', 'two'],
    );
    subscription.cut();
  });

  it('9.1 where no name that begins so can be read it is forbidden', async () => {
    const prefix = freshPrefix();
    for (const patterns of [[], [`x${prefix}*`], [prefix.slice(0, -1)]]) {
      const headers = bearer(await issuer.grant({ subscribe: patterns, publish: ['*'] }));
      assertProblem(await refusedPrefix(broker.port, prefix, { headers }), 403, 'forbidden');
    }
    for (const patterns of ['*', prefix, `${prefix}a`, `${prefix.slice(0, 3)}*`]) {
      const headers = bearer(await issuer.grant({ subscribe: [patterns] }));
      (await openPrefix(broker.port, prefix, { headers })).cut();
    }
    assertProblem(await refusedPrefix(broker.port, prefix), 401, 'unauthorized');
  });

  it("9.1 nobody resumes somebody else's cursor, or ends the connection of it", async () => {
    const prefix = freshPrefix();
    const own = bearer(await issuer.grant({ subscribe: ['*'] }, { sub: 'dora' }));
    const first = await openPrefix(broker.port, prefix, { headers: own });
    const { lastEventId } = first;
    const others = [
      bearer(bob.key),
      bearer(await issuer.grant({ subscribe: ['*'], admin: true }, { sub: 'eve' })),
      bearer(await issuer.grant({ subscribe: ['*'] })),
    ];
    for (const headers of others) {
      assertUnknown(await refusedPrefix(broker.port, prefix, { headers, lastEventId }));
    }
    await say(`${prefix}a`, 'one');
    await first.untilEvents(1);
    assert.equal(first.ending, undefined);
    // A newer token of the same subject is the same somebody.
    const renewed = bearer(await issuer.grant({ subscribe: ['*'] }, { sub: 'dora' }));
    const second = await openPrefix(broker.port, prefix, { headers: renewed, lastEventId });
    await second.untilEvents(1);
    assert.equal(await first.untilEnded(), 'end');
    second.cut();
  });

  it('9.1 it ends with its token, also where there is no stream, and a newer one goes on', async () => {
    const prefix = freshPrefix();
    // Within the tolerance for clocks that differ, so that the end is near.
    const claims = { sub: 'fay', exp: nowSeconds() - 1 };
    const headers = bearer(await issuer.grant({ subscribe: ['*'] }, claims));
    const first = await openPrefix(broker.port, prefix, { headers });
    assert.equal(await first.untilEnded(), 'end');
    await say(`${prefix}a`, 'one');
    const again = await askPrefix(broker.port, prefix, { headers, lastEventId: first.lastEventId });
    assertProblem(await again.refusal(), 401, 'unauthorized');
    const renewed = bearer(await issuer.grant({ subscribe: ['*'] }, { sub: 'fay' }));
    const second = await openPrefix(broker.port, prefix, {
      headers: renewed,
      lastEventId: first.lastEventId,
    });
    await second.untilEvents(1);
    second.cut();
  });
});
