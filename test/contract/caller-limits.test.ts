import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  freshStream,
  publish,
  publishLines,
  publishRequest,
} from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { METRIC } from '../support/metric-names.js';
import { freshPrefix, openPrefix, refusedPrefix } from '../support/prefix-reader.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { bearer, Files, Issuer, keySetOf } from '../support/tokens.js';

const PROXY = ['--trusted-proxies', '127.0.0.0/8'];
const REFUSED = 'gapless_subscriptions_refused_total';

const files = new Files();
const issuer = await Issuer.create('HS256');

function from(address: string): Record<string, string> {
  return { 'X-Forwarded-For': address };
}

function assertRetry(response: HttpResponse): void {
  assert.match(response.header('retry-after') ?? '', /^[1-9]\d*$/);
}

describeOnEdges(
  '9.3 subscribers',
  ['--subscribers-max', '6', '--stream-subscribers-max', '3', '--address-subscribers-max', '2', ...PROXY],
  (broker) => {
    it('9.3 of one address, of one stream and in all are bounded; who leaves makes room', async () => {
      const refusal = async (stream: string, address: string): Promise<unknown> => {
        const asked = await SseSubscription.ask(broker.port, stream, { headers: from(address) });
        const response = await asked.refusal();
        assertRetry(response);
        return assertProblem(response, 503, 'too_many_subscriptions').scope;
      };
      const open = (stream: string, address: string) =>
        SseSubscription.open(broker.port, stream, { headers: from(address) });
      const [a, b] = [freshStream('a'), freshStream('b')];
      const first = await open(a, '192.0.2.1');
      const opened = [await open(b, '192.0.2.1'), await open(a, '192.0.2.2'), await open(a, '192.0.2.3')];
      assert.equal(await refusal(b, '192.0.2.1'), 'address');
      assert.equal(await refusal(a, '192.0.2.4'), 'stream');
      opened.push(await open(b, '192.0.2.4'), await open(b, '192.0.2.5'));
      assert.equal(await refusal(freshStream('c'), '192.0.2.6'), 'server');
      const metrics = await scrape(broker.port);
      for (const reason of ['server', 'stream', 'address'])
        assert.ok(total(metrics, REFUSED, { reason }) >= 1, reason);
      await publish(broker.port, a, 'still here');
      await first.untilEvents(1);
      first.cut();
      const again = await eventually('room for another', async () => {
        const asked = await SseSubscription.ask(broker.port, a, { headers: from('192.0.2.1') });
        return asked.status === 200 && asked;
      });
      for (const subscription of [again, ...opened]) subscription.cut();
      await eventually('them to be gone', async () => {
        return total(await scrape(broker.port), METRIC.subscribers) === 0;
      });
    });

    it('9.3 an address is the nearest that is no trusted proxy, and an IPv6 network is one', async () => {
      const stream = freshStream('proxied');
      const addresses = ['198.51.100.9, 2001:db8:0:1::1', '203.0.113.7, 2001:db8:0:1:ffff::2, 127.0.0.9'];
      const opened = await Promise.all(
        addresses.map((address) => SseSubscription.open(broker.port, stream, { headers: from(address) })),
      );
      const asked = await SseSubscription.ask(broker.port, stream, { headers: from('2001:db8:0:1::3') });
      assert.equal(assertProblem(await asked.refusal(), 503, 'too_many_subscriptions').scope, 'address');
      const other = await SseSubscription.open(broker.port, stream, { headers: from('2001:db8:0:2::1') });
      for (const subscription of [other, ...opened]) subscription.cut();
    });
  },
);

describe('9.3 subscriptions by prefix', () => {
  const broker = useBroker('--address-subscribers-max', '2', ...PROXY);

  it('9.3 count for their address before there is a stream', async () => {
    const options = { headers: from('192.0.2.1') };
    const open = [];
    for (let i = 0; i < 2; i++) open.push(await openPrefix(broker.port, freshPrefix(), options));
    const refused = await refusedPrefix(broker.port, freshPrefix(), options);
    assert.equal(assertProblem(refused, 503, 'too_many_subscriptions').scope, 'address');
    for (const subscription of open) subscription.cut();
  });
});

describe('9.3 rates of publishers', () => {
  const broker = useBroker(
    ...[
      '--jwt-keys-file',
      files.write('keys.json', keySetOf(issuer)),
      '--publish-events-rate',
      '20',
      '--publish-bytes-rate',
      '1MiB',
    ],
  );

  it('9.3 over its rate a subject is 429 rate_limited, whatever its token, and others are not', async () => {
    const stream = freshStream('rate');
    const rights = { publish: ['*'], subscribe: ['*'] };
    const [one, same, other] = await Promise.all(
      [{ sub: 'one' }, { sub: 'one', nbf: 1 }, { sub: 'other' }].map((claims) =>
        issuer.grant(rights, claims),
      ),
    );
    // So far above the rate that a slow machine comes with its next two requests before it is over.
    const lines = range(1, 120).map(String);
    await publish(broker.port, stream, lines.join('\n'), 'application/x-ndjson', bearer(one ?? ''));
    for (const token of [one, same]) {
      const refused = await request(
        broker.port,
        publishRequest(stream, 'x', 'text/plain', bearer(token ?? '')),
      );
      assertProblem(refused, 429, 'rate_limited');
      assertRetry(refused);
    }
    const { first } = await publish(broker.port, stream, 'x', undefined, bearer(other ?? ''));
    assert.equal(first, lines.length + 1, 'what was refused was not appended');
    await eventually('the rate to allow more', async () => {
      const asked = publishRequest(stream, 'x', 'text/plain', bearer(one ?? ''));
      return (await request(broker.port, asked)).status === 200;
    });
  });

  it('9.3 bytes count as well', async () => {
    const token = bearer(await issuer.grant({ publish: ['*'] }, { sub: 'large' }));
    const large = 'x'.repeat(1_000_000);
    const stream = freshStream('bytes');
    const statuses: number[] = [];
    // The slower it is, the more of them fit into the rate.
    while (statuses.at(-1) !== 429 && statuses.length < 50) {
      statuses.push((await request(broker.port, publishRequest(stream, large, 'text/plain', token))).status);
    }
    assert.deepEqual([statuses[0], statuses.at(-1)], [200, 429]);
  });
});

describe('9.3 the replay budget of an address', () => {
  const broker = useBroker('--address-replay-bytes-max', '200KiB', ...PROXY);

  it('9.3 a client in a reconnect loop is 429 replay_limited; others, and who is up to date, are not', async () => {
    const stream = freshStream('loop');
    const live = await SseSubscription.open(broker.port, stream, { headers: from('192.0.2.1') });
    await publishLines(
      broker.port,
      stream,
      range(1, 200).map((n) => String(n).padEnd(1000, '.')),
    );
    const loop = async (): Promise<SseSubscription> =>
      SseSubscription.ask(broker.port, stream, { cursor: 'earliest', headers: from('192.0.2.1') });
    let turns = 0;
    for (;;) {
      const asked = await loop();
      if (asked.status === 429) {
        assertProblem(await asked.refusal(), 429, 'replay_limited');
        break;
      }
      asked.cut();
      assert.ok(++turns < 20, 'the loop is never stopped');
    }
    assert.ok(turns >= 4, `only ${turns} replays`);
    const askPage = () =>
      request(broker.port, {
        path: `/v1/streams/${stream}`,
        headers: { Accept: 'application/json', ...from('192.0.2.1') },
      });
    const page = await askPage();
    // What was exactly at the budget may be below it again by now, and then a page is the last that fits.
    assertProblem(page.status === 200 ? await askPage() : page, 429, 'replay_limited');
    const joined = await SseSubscription.open(broker.port, stream, { headers: from('192.0.2.1') });
    const other = await SseSubscription.open(broker.port, stream, {
      cursor: 'earliest',
      headers: from('192.0.2.2'),
    });
    await other.untilSeq(200);
    await live.untilSeq(200);
    await publish(broker.port, stream, 'last');
    await Promise.all([live, joined, other].map((subscription) => subscription.untilSeq(201)));
    assert.deepEqual(live.seqs, range(1, 201));
    for (const subscription of [live, joined, other]) subscription.cut();
    assert.ok(total(await scrape(broker.port), REFUSED, { reason: 'replay' }) >= 2);
  });
});

describe('9.3 an edge that is late', () => {
  const broker = useBroker('--shed-replays-ms', '100ms', '--shed-subscriptions-ms', '30s');
  const strict = useBroker('--shed-replays-ms', '100ms', '--shed-subscriptions-ms', '200ms');

  /** Holds the whole process up by so much that it takes seconds until the pressure, which fades, is below the bounds. */
  async function stall(pid: number): Promise<void> {
    process.kill(pid, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 5000));
    process.kill(pid, 'SIGCONT');
  }

  it('9.3 refuses replays first, takes new subscriptions, keeps the live ones, and recovers', async () => {
    const stream = freshStream('late');
    const live = await SseSubscription.open(broker.port, stream);
    await publish(broker.port, stream, 'one');
    await stall(broker.process.pid);
    // Answered after the clock has looked: what is asked after the stall finds the pressure.
    await request(broker.port, { path: '/healthz' });
    const replay = await SseSubscription.ask(broker.port, stream, { cursor: 'earliest' });
    const refused = await replay.refusal();
    assertProblem(refused, 503, 'overloaded');
    assertRetry(refused);
    const joined = await SseSubscription.open(broker.port, stream);
    await publish(broker.port, stream, 'two');
    await Promise.all([live.untilEvents(2), joined.untilEvents(1)]);
    const recovered = await eventually('replays again', async () => {
      const asked = await SseSubscription.ask(broker.port, stream, { cursor: 'earliest' });
      return asked.status === 200 && asked;
    });
    await recovered.untilEvents(2);
    for (const subscription of [live, joined, recovered]) subscription.cut();
    assert.ok(total(await scrape(broker.port), REFUSED, { reason: 'shed_replay' }) >= 1);
  });

  it('9.3 refuses new subscriptions when it is later still, and publishes on', async () => {
    const stream = freshStream('later');
    // A busy machine makes it late as well.
    const live = await eventually('it to be in time', async () => {
      const asked = await SseSubscription.ask(strict.port, stream);
      return asked.status === 200 && asked;
    });
    await stall(strict.process.pid);
    await request(strict.port, { path: '/healthz' });
    const asked = await SseSubscription.ask(strict.port, stream);
    assertProblem(await asked.refusal(), 503, 'overloaded');
    await publish(strict.port, stream, 'one');
    await live.untilEvents(1);
    live.cut();
    assert.ok(total(await scrape(strict.port), REFUSED, { reason: 'shed_subscription' }) >= 1);
  });
});
