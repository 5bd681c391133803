import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { makeDirectory, removeDirectory, useDurableBroker } from '../support/durable-broker.js';
import { createStream, MEDIA_TYPES, publish, publishLines, readPage } from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { REPOSITORY_ROOT } from '../support/paths.js';
import { NO_PROMETHEUS, PrometheusServer, promtoolCheck } from '../support/prometheus-server.js';
import { SseSubscription } from '../support/sse-client.js';
import { LiveSocket } from '../support/websocket-client.js';

const STREAM = 'jobs-1';
const DASHBOARDS = ['gapless', 'gapless-process'];
/** What Grafana puts in the place of its variables, with a scrape every 300 ms. */
const VARIABLES: Readonly<Record<string, string>> = {
  $__rate_interval: '3s',
  $__range: '1m',
  $instance: '.*',
};
const SCRAPES = 6;

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

describe('10 Prometheus, the dashboards and the alerts', { skip: NO_PROMETHEUS }, () => {
  const folder = makeDirectory();
  let prometheus: PrometheusServer;
  let traffic: Traffic;
  after(async () => {
    await traffic?.stop();
    await prometheus?.stop();
    removeDirectory(folder);
  });
  const broker = useDurableBroker(
    ...['--threads', '2', '--ring-bytes', '64KiB', '--metrics-streams', 'jobs-*'],
    ...['--mcp', '/mcp=http://127.0.0.1:1/mcp'],
  );
  before(async () => {
    traffic = await Traffic.start(broker.port);
    prometheus = await PrometheusServer.start(folder, broker.port);
    await eventually('some scrapes', async () => {
      const [series] = await prometheus.query('count_over_time(gapless_log_commit_seconds_count[1m])');
      return Number(series?.value[1] ?? 0) >= SCRAPES;
    });
  });

  /** On a busy machine some scrapes come too late, and rates are without an answer until the next ones. */
  function untilAnswered(what: string, query: string): Promise<unknown> {
    return eventually(what, async () => (await prometheus.query(query)).length > 0);
  }

  for (const name of DASHBOARDS) {
    it(`10 every query of the dashboard ${name} has an answer`, async () => {
      const text = readFileSync(join(REPOSITORY_ROOT, `grafana/dashboards/${name}.json`), 'utf8');
      const { panels } = JSON.parse(text) as { panels: readonly Panel[] };
      for (const { title, targets = [] } of panels) {
        for (const { expr } of targets) {
          const asked = Object.entries(VARIABLES).reduce(
            (part, [word, value]) => part.replaceAll(word, value),
            expr,
          );
          await untilAnswered(`${title}: ${asked}`, asked);
        }
      }
    });
  }

  it('10 the rules are understood by promtool, and by Prometheus, and what each looks at is there', async () => {
    const { status, output } = promtoolCheck('rules', join(REPOSITORY_ROOT, 'grafana/alerts.yml'));
    assert.equal(status, 0, output);
    const config = promtoolCheck('config', join(folder, 'prometheus.yml'));
    assert.equal(config.status, 0, config.output);
    const rules = await eventually('the rules to be evaluated', async () => {
      const known = await prometheus.rules();
      return known.every(({ health }) => health !== 'unknown') && known;
    });
    assert.ok(rules.length > 10);
    for (const { name, query, health, lastError } of rules) {
      assert.equal(health, 'ok', `${name}: ${lastError}`);
      const [, looksAt = ''] = /^(.*) [<>] [\d.]+(?:e[+\d]+)?$/.exec(query) ?? [];
      assert.notEqual(looksAt, '', `${name}: ${query}`);
      await untilAnswered(`${name}: ${looksAt}`, looksAt);
    }
  });

  it('10 in peace no alert is firing', async () => {
    const loud = (await prometheus.rules()).filter(({ state }) => state === 'firing');
    assert.deepEqual(
      loud.map(({ name }) => name),
      [],
    );
  });
});

/** A bit of all that a broker has to do. */
class Traffic {
  #isOver = false;
  readonly #work: Promise<void>;

  private constructor(port: number) {
    this.#work = this.#run(port);
    this.#work.catch(() => undefined);
  }

  static async start(port: number): Promise<Traffic> {
    await createStream(port, STREAM);
    const lines = range(1, 100).map((line) => `${line} `.padEnd(1000, '.'));
    // More than the ring keeps: who begins with the earliest is read to from the log.
    for (const _batch of range(1, 4)) await publishLines(port, STREAM, lines);
    return new Traffic(port);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#work;
  }

  async #run(port: number): Promise<void> {
    const publisher = await HttpConnection.open(port);
    const live = await SseSubscription.open(port, STREAM, { query: 'subscriber=billing', keepEvents: false });
    const socket = await LiveSocket.open(port, STREAM);
    while (!this.#isOver) {
      await publish(publisher, STREAM, 'event', MEDIA_TYPES.text, {
        'Idempotency-Key': String(performance.now()),
      });
      await readPage(port, STREAM, 'limit=1');
      const late = await SseSubscription.open(port, STREAM, { cursor: 'earliest', keepEvents: false });
      await late.untilEvents(400);
      late.cut();
    }
    live.cut();
    socket.cut();
    publisher.destroy();
  }
}
