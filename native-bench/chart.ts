import type { Result, ScenarioResult } from './result.js';

const WIDTH = 860;
const ROW = 24;
const LABELS = 190;
const VALUES = 150;
const TOP = 54;
const BOTTOM = 34;

/** Bars of all rates on one logarithmic scale, as an SVG document. */
export function drawChart(result: Result): string {
  const rates = result.scenarios.filter(({ unit, spread }) => unit.endsWith('/s') && spread.median > 0);
  const powers = rates.map(({ spread }) => Math.log10(spread.median));
  const low = Math.floor(Math.min(...powers, 3));
  const high = Math.ceil(Math.max(...powers, low + 1));
  const height = TOP + rates.length * ROW + BOTTOM;
  const scale = (value: number) => ((Math.log10(value) - low) / (high - low)) * (WIDTH - LABELS - VALUES);
  const { environment: at, settings } = result;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(12, 22, 'Rates, medians, logarithmic scale', 'font-size="15" font-weight="bold"'),
    text(12, 41, `commit ${at.gitSha}, ${at.cpu}, Node ${at.node}, ${settings.runs} rounds`, 'fill="#555"'),
    ...powersOfTen(low, high).map((power) => gridLine(LABELS + scale(10 ** power), power, height)),
    ...rates.map((rate, row) => bar(rate, TOP + row * ROW, scale(rate.spread.median))),
    '</svg>',
    '',
  ].join('\n');
}

function bar({ name, unit, spread }: ScenarioResult, y: number, length: number): string {
  const value = `${Math.round(spread.median).toLocaleString('en')} ${unit}`;
  const middle = y + ROW / 2 + 4;
  return [
    text(LABELS - 8, middle, name, 'text-anchor="end"'),
    `<rect x="${LABELS}" y="${y + 4}" width="${length.toFixed(1)}" height="${ROW - 8}" fill="${colorOf(name)}"/>`,
    text(LABELS + length + 6, middle, value, 'fill="#333"'),
  ].join('\n');
}

/** The baseline and what others do stand back. */
function colorOf(name: string): string {
  const isOther = ['send', 'nchan-', 'node-http-', 'better-sse-', 'pushpin-', 'redis-', 'nats-'].some(
    (other) => name.startsWith(other),
  );
  return isOther ? '#b8bec6' : '#2f6fb0';
}

function powersOfTen(low: number, high: number): number[] {
  return Array.from({ length: high - low + 1 }, (_, i) => low + i);
}

function gridLine(x: number, power: number, height: number): string {
  const bottom = height - BOTTOM + 4;
  return [
    `<line x1="${x.toFixed(1)}" x2="${x.toFixed(1)}" y1="${TOP}" y2="${bottom}" stroke="#ddd"/>`,
    text(
      x,
      bottom + 16,
      (10 ** power).toLocaleString('en'),
      'text-anchor="middle" fill="#777" font-size="11"',
    ),
  ].join('\n');
}

function text(x: number, y: number, content: string, attributes: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${escaped}</text>`;
}
