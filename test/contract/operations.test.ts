import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { freshStream, MEDIA_TYPES, publish, publishLines } from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { FAMILIES, METRIC } from '../support/metric-names.js';
import { parseMetrics, scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';

describeOnEdges('10 operations', [], (broker) => {
  it('10 /healthz and /readyz answer 200', async () => {
    for (const path of ['/healthz', '/readyz']) {
      assert.equal((await request(broker.port, { path })).status, 200, path);
    }
  });

  it('10 /metrics is Prometheus text: every family with one HELP and one TYPE, every name with its prefix', async () => {
    await publish(broker.port, freshStream('metrics'), 'one');
    const response = await request(broker.port, { path: '/metrics' });
    assert.equal(response.status, 200);
    assert.match(response.header('content-type') ?? '', /^text\/plain; ?version=0\.0\.4/);
    const families = parseMetrics(response.text);
    for (const [name, type] of Object.entries(FAMILIES)) assert.equal(families.get(name)?.type, type, name);
    for (const { name, type, help, samples } of families.values()) {
      assert.match(type, /^(counter|gauge|histogram|summary)$/, name);
      assert.notEqual(help, '', name);
      assert.match(name, /^(gapless|nodejs|process)_/);
      if (type === 'counter')
        assert.ok(
          samples.every(({ value }) => value >= 0),
          name,
        );
      const series = samples.map(({ name: sample, labels }) => `${sample} ${JSON.stringify(labels)}`);
      assert.equal(new Set(series).size, series.length, `a series of ${name} stands twice`);
    }
  });

  it('10 no metric has a connection, cursor or address among its labels', async () => {
    const stream = freshStream('labels');
    const subscription = await SseSubscription.open(broker.port, stream);
    const { epoch } = await publish(broker.port, stream, 'one');
    const response = await request(broker.port, { path: '/metrics' });
    assert.ok(!response.text.includes(epoch) && !response.text.includes('127.0.0.1'));
    subscription.cut();
  });

  it('10 few series by default, however many streams, types, subscribers and refusals there are', async () => {
    const publisher = await HttpConnection.open(broker.port);
    const subscriptions: SseSubscription[] = [];
    for (const index of range(1, 300)) {
      const stream = freshStream(`many-${index}`);
      const batch = JSON.stringify([{ type: `type-${index}`, data: 'one' }]);
      await publish(publisher, stream, batch, MEDIA_TYPES.batch);
      await publisher.request({ path: `/v1/streams/${stream}?cursor=malformed-${index}` });
      if (index > 40) continue;
      const query = `subscriber=name-${index}&types=type-${index}`;
      subscriptions.push(await SseSubscription.open(broker.port, stream, { query }));
    }
    const samples = [...(await scrape(broker.port)).values()].flatMap((family) => family.samples);
    for (const subscription of subscriptions) subscription.cut();
    publisher.destroy();
    const values = new Map<string, Set<string>>();
    for (const { name, labels } of samples) {
      for (const [label, value] of Object.entries(labels)) {
        const key = `${name}{${label}}`;
        values.set(key, (values.get(key) ?? new Set()).add(value));
      }
    }
    for (const [key, { size }] of values) assert.ok(size <= 12, `${key} has ${size} values`);
    assert.ok(samples.length < 500, `${samples.length} series`);
  });

  it('10 the subscriber and connection gauges follow what is open', async () => {
    const stream = freshStream('gauges');
    const subscriptions = await Promise.all(
      range(1, 40).map(() => SseSubscription.open(broker.port, stream)),
    );
    await eventually('40 subscribers to be counted', async () => {
      const families = await scrape(broker.port);
      return total(families, METRIC.subscribers) === 40 && total(families, METRIC.connections) >= 40;
    });
    for (const subscription of subscriptions) subscription.cut();
    await eventually(
      'them to be gone',
      async () => total(await scrape(broker.port), METRIC.subscribers) === 0,
    );
  });

  it('10 what the counters say is what was published and delivered', async () => {
    const stream = freshStream('counters');
    const subscriptions = await Promise.all(range(1, 5).map(() => SseSubscription.open(broker.port, stream)));
    await Promise.all(subscriptions.map((subscription) => subscription.untilPrimed()));
    const before = await scrape(broker.port);
    await publishLines(broker.port, stream, range(1, 30).map(String));
    for (const subscription of subscriptions) {
      await subscription.untilEvents(30);
      subscription.cut();
    }
    // An edge counts what it has delivered when it is done with all who wait for it.
    const after = await eventually('the last deliveries to be counted', async () => {
      const families = await scrape(broker.port);
      return total(families, METRIC.deliveries) >= total(before, METRIC.deliveries) + 150 && families;
    });
    const growth = (name: string) => total(after, name) - total(before, name);
    assert.deepEqual([growth(METRIC.publishedEvents), growth(METRIC.deliveries)], [30, 150]);
  });

  it('10 the seams held: the metric that must stay 0 is there, and 0', async () => {
    const stream = freshStream('seams');
    const subscription = await SseSubscription.open(broker.port, stream, { cursor: 'earliest' });
    for (const round of range(1, 20))
      await publishLines(
        broker.port,
        stream,
        range(1, 50).map((line) => `${round}/${line}`),
      );
    await subscription.untilEvents(1_000);
    subscription.cut();
    assert.equal(total(await scrape(broker.port), METRIC.seamViolations), 0);
  });
});

describe('10 metrics of single streams', () => {
  const broker = useBroker('--metrics-streams', 'shown-*', '--metrics-streams-top', '0');

  it('10 only the streams that the operator named have series of their own', async () => {
    const shown = freshStream('shown');
    await publishLines(broker.port, shown, ['one', 'two']);
    await publish(broker.port, freshStream('hidden'), 'one');
    const families = await scrape(broker.port);
    assert.equal(total(families, METRIC.streamHead, { stream: shown }), 2);
    assert.equal(families.get(METRIC.streamHead)?.samples.length, 1);
    assert.equal(total(families, METRIC.streams), 2);
  });
});
