import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { collectDefaultMetrics, Registry } from 'prom-client';
import {
  COMMIT_SECONDS,
  LOG_DISK_FREE,
  LOG_FAULT,
  LOG_METRICS,
  REPLAY_METRICS,
} from '#gapless/metrics/log-names.js';
import { MCP_FAILURES, MCP_METRICS } from '#gapless/metrics/mcp-names.js';
import {
  CATCH_UP,
  COMPUTED,
  LOOP_DELAY,
  STREAM_METRICS,
  SUBSCRIBER_LAG,
  WORD_METRICS,
} from '#gapless/metrics/names.js';
import { PREFIX_METRICS } from '#gapless/metrics/prefix-metrics.js';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const ROOT = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');
const DASHBOARDS = ['gapless', 'gapless-process'].map(
  (name) => JSON.parse(read(`grafana/dashboards/${name}.json`)) as { panels: readonly Panel[] },
);
const PANELS = DASHBOARDS.flatMap(({ panels }) => panels).filter(({ type }) => type !== 'row');
const ALERTS = read('grafana/alerts.yml');

/** The broker's metrics, by all the names that a query can know them under. */
const OURS: ReadonlySet<string> = new Set(
  [
    ...[
      ...WORD_METRICS,
      ...LOG_METRICS,
      ...MCP_METRICS,
      ...PREFIX_METRICS,
      MCP_FAILURES,
      LOOP_DELAY,
      LOG_FAULT,
      LOG_DISK_FREE,
    ],
    ...[COMPUTED, STREAM_METRICS, REPLAY_METRICS].flatMap((metrics) => Object.values(metrics)),
  ]
    .map(({ name }) => name)
    .concat(
      [SUBSCRIBER_LAG, COMMIT_SECONDS, CATCH_UP].flatMap(({ name }) =>
        ['', '_bucket', '_sum', '_count'].map((suffix) => name + suffix),
      ),
    ),
);

/** What the client library tells of the process. */
function processMetrics(): ReadonlySet<string> {
  const register = new Registry();
  collectDefaultMetrics({ register });
  return new Set(register.getMetricsAsArray().map(({ name }) => name));
}

function metricsIn(text: string): string[] {
  return text.match(/\b(?:gapless|process|nodejs)_[a-z0-9_]*[a-z0-9]\b/g) ?? [];
}

test('10 every metric that the dashboard asks for exists', () => {
  const known = new Set([...OURS, ...processMetrics()]);
  for (const { title, targets = [] } of PANELS) {
    assert.ok(targets.length > 0, `${title}: no query`);
    for (const { expr } of targets) {
      assert.ok(metricsIn(expr).length > 0, `${title}: ${expr} names no metric`);
      for (const name of metricsIn(expr)) assert.ok(known.has(name), `${title}: there is no ${name}`);
    }
  }
});

test('10 every value of a label that the dashboard asks for exists', () => {
  const values = new Map(
    WORD_METRICS.flatMap(({ words }) =>
      typeof words === 'number' ? [] : [[words.label, Object.keys(words.values)] as const],
    ),
  );
  for (const { title, targets = [] } of PANELS) {
    const matchers = targets.flatMap(({ expr }) => [...expr.matchAll(/(\w+)="(\w+)"/g)]);
    for (const [, label = '', value = ''] of matchers) {
      const isKnown = values.get(label)?.includes(value) ?? true;
      assert.ok(isKnown, `${title}: there is no ${label} ${value}`);
    }
  }
});

test('10 every panel says which question it answers, and the folder has it in its list', () => {
  const panels = [...read('grafana/README.md').matchAll(/^\| ([^|]+?) +\|/gm)].map(([, title]) => title);
  for (const { title, description = '' } of PANELS) {
    assert.match(description, /\?|Must be 0/, title);
    assert.ok(panels.includes(title), `${title} is not in grafana/README.md`);
  }
  assert.equal(new Set(PANELS.map(({ title }) => title)).size, PANELS.length, 'titles are unique');
  for (const { panels } of DASHBOARDS) {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, 'ids are unique');
  }
});

test('10 every metric of the broker is on a dashboard', () => {
  const asked = PANELS.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => metricsIn(expr)));
  const shown = new Set(asked.map((name) => name.replace(/_(bucket|sum|count)$/, '')));
  const missing = [...OURS].filter((name) => !shown.has(name.replace(/_(bucket|sum|count)$/, '')));
  assert.deepEqual(missing, []);
});

test('10 every alert compares one expression with a number, over metrics that exist, and says what it means', () => {
  const rules = ALERTS.split('- alert: ').slice(1);
  assert.ok(rules.length > 10);
  for (const rule of rules) {
    const expr = /expr: (.*)/.exec(rule)?.[1] ?? '';
    assert.match(expr, / [<>] [\d.]+$/, rule);
    for (const name of metricsIn(expr)) assert.ok(OURS.has(name) || processMetrics().has(name), name);
    assert.match(rule, /severity: (warning|critical)/);
    assert.match(rule, /summary: .+\./);
  }
  const described = read('grafana/README.md');
  for (const [, name = ''] of ALERTS.matchAll(/- alert: (\w+)/g)) assert.ok(described.includes(name), name);
});

test('10 every metric that the documents name exists', () => {
  const known = new Set([...OURS, ...processMetrics()]);
  for (const path of ['README.md', 'src/README.md', 'src/PROTOCOL.md', 'grafana/README.md']) {
    const unknown = metricsIn(read(path)).filter((name) => !known.has(name));
    assert.deepEqual(unknown, [], path);
  }
});
