import assert from 'node:assert/strict';
import { request } from './http.js';

export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface Family {
  name: string;
  type: string;
  help: string;
  samples: Sample[];
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)/;
const SUFFIXES = /_(bucket|sum|count)$/;

/** Reads the Prometheus text format 0.0.4, strictly: what does not parse fails the test. */
export function parseMetrics(text: string): Map<string, Family> {
  assert.ok(text.endsWith('\n'), 'the last line must end');
  const families = new Map<string, Family>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const comment = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line);
    if (comment?.[2] !== undefined) {
      const family = familyOf(families, comment[2]);
      if (comment[1] === 'TYPE') {
        assert.equal(family.type, '', `two TYPE lines for ${family.name}`);
        assert.equal(family.samples.length, 0, `TYPE after samples of ${family.name}`);
        family.type = comment[3] ?? '';
      } else {
        family.help = comment[3] ?? '';
      }
    } else if (!line.startsWith('#')) {
      const sample = parseSample(line);
      const base = sample.name.replace(SUFFIXES, '');
      const owner = families.has(sample.name) ? sample.name : base;
      familyOf(families, owner).samples.push(sample);
    }
  }
  return families;
}

/** Scrapes `/metrics` once. */
export async function scrape(port: number): Promise<Map<string, Family>> {
  const response = await request(port, { path: '/metrics' });
  assert.equal(response.status, 200, response.text);
  return parseMetrics(response.text);
}

/** The sum over all samples of a family that carry these labels; 0 where there are none. Fails on an unknown family. */
export function total(
  families: Map<string, Family>,
  name: string,
  labels: Record<string, string> = {},
): number {
  const family = families.get(name);
  assert.ok(family, `no metric ${name}; there are ${[...families.keys()].join(' ')}`);
  return family.samples
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, sample) => sum + sample.value, 0);
}

/** How many observations a histogram has, over all its series. */
export function observations(families: Map<string, Family>, name: string): number {
  const counts = families.get(name)?.samples.filter((sample) => sample.name === `${name}_count`);
  assert.ok(counts !== undefined && counts.length > 0, `no histogram ${name}`);
  return counts.reduce((sum, sample) => sum + sample.value, 0);
}

function familyOf(families: Map<string, Family>, name: string): Family {
  let family = families.get(name);
  if (family === undefined) {
    family = { name, type: '', help: '', samples: [] };
    families.set(name, family);
  }
  return family;
}

function parseSample(line: string): Sample {
  const match = SAMPLE.exec(line);
  assert.ok(match?.[1] !== undefined && match[3] !== undefined, `not a sample: ${line}`);
  return { name: match[1], labels: parseLabels(match[2] ?? ''), value: parseValue(match[3]) };
}

function parseValue(text: string): number {
  // As Prometheus itself reads it, by Go's ParseFloat: the words in any case.
  const word = text.toLowerCase();
  if (word === 'nan') return Number.NaN;
  if (word === '+inf') return Number.POSITIVE_INFINITY;
  if (word === '-inf') return Number.NEGATIVE_INFINITY;
  const value = Number(text);
  assert.ok(!Number.isNaN(value), `not a number: ${text}`);
  return value;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  let rest = text;
  while (rest !== '') {
    const match = LABEL.exec(rest);
    assert.ok(match?.[1] !== undefined && match[2] !== undefined, `not a label: ${rest}`);
    assert.ok(!(match[1] in labels), `the label ${match[1]} stands twice`);
    labels[match[1]] = match[2].replace(/\\(.)/g, (_whole, char: string) => (char === 'n' ? '\n' : char));
    rest = rest.slice(match[0].length);
  }
  return labels;
}
