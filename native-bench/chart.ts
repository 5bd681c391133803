import type { Result, ScenarioResult } from './result.js';

const WIDTH = 860;
const ROW = 22;
const LABELS = 150;
const VALUES = 150;
const TOP = 58;
const BOTTOM = 34;

/** A bar, or the heading of those that follow. */
type Row = { readonly heading: string } | { readonly label: string; readonly rate: ScenarioResult };

/**
 * Bars of rates on one logarithmic scale, as an SVG document: of servers side by side, load by load, where there are
 * several, or else of all scenarios.
 */
export function drawChart(result: Result): string {
  const rates = result.scenarios.filter(
    (each) => each.unit.endsWith('/s') && (each.fault !== null || medianOf(each) > 0),
  );
  const rows = rates.some(({ beside }) => beside !== null) ? rowsByLoad(rates) : rates.map(rowOf);
  const shown = rows.flatMap((row) =>
    'rate' in row && row.rate.spread !== null ? [medianOf(row.rate)] : [],
  );
  const powers = shown.map(Math.log10);
  const low = Math.floor(Math.min(...powers, 3));
  const high = Math.ceil(Math.max(...powers, low + 1));
  const height = TOP + rows.length * ROW + BOTTOM;
  const scale = (value: number) => ((Math.log10(value) - low) / (high - low)) * (WIDTH - LABELS - VALUES);
  const { environment: at, settings } = result;
  const commit = at.gitDirty ? `${at.gitSha} with changes` : at.gitSha;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(12, 22, 'Medians, logarithmic scale', 'font-size="15" font-weight="bold"'),
    text(
      12,
      42,
      `${at.date.slice(0, 10)}, commit ${commit}, ${at.cpu}, ${at.cores} cores (one for the server), ` +
        `Node ${at.node}, ${settings.runs} rounds of ${settings.durationMs / 1000} s`,
      'fill="#555" font-size="12"',
    ),
    ...powersOfTen(low, high).map((power) => gridLine(LABELS + scale(10 ** power), power, height)),
    ...rows.map((row, i) => draw(row, TOP + i * ROW, scale)),
    '</svg>',
    '',
  ].join('\n');
}

function rowOf(rate: ScenarioResult): Row {
  return { label: rate.name, rate };
}

function rowsByLoad(rates: readonly ScenarioResult[]): Row[] {
  const loads = [...new Set(rates.flatMap(({ beside }) => beside?.load ?? []))];
  return loads.flatMap((load) => {
    const ofLoad = rates.filter(({ beside }) => beside?.load === load);
    const fastestFirst = ofLoad.sort((a, b) => medianOf(b) - medianOf(a));
    return [{ heading: load }, ...fastestFirst.map((rate) => ({ label: rate.beside?.server ?? '', rate }))];
  });
}

function draw(row: Row, y: number, scale: (value: number) => number): string {
  const middle = y + ROW / 2 + 4;
  if ('heading' in row) return text(12, middle + 3, row.heading, 'font-weight="bold"');
  const { name, unit, spread, fault } = row.rate;
  const label = text(LABELS - 8, middle, row.label, 'text-anchor="end"');
  if (spread === null) return [label, text(LABELS + 6, middle, fault ?? '', 'fill="#a33"')].join('\n');
  const length = scale(spread.median);
  const value = `${Math.round(spread.median).toLocaleString('en')} ${unit}${fault === null ? '' : `; ${fault}`}`;
  return [
    label,
    `<rect x="${LABELS}" y="${y + 3}" width="${length.toFixed(1)}" height="${ROW - 6}" fill="${colorOf(row.rate, name)}"/>`,
    text(LABELS + length + 6, middle, value, 'fill="#333"'),
  ].join('\n');
}

/** Zero where there is no number. */
function medianOf({ spread }: ScenarioResult): number {
  return spread?.median ?? 0;
}

/** The baseline and what others do stand back. */
function colorOf({ beside }: ScenarioResult, name: string): string {
  const isOurs = beside === null ? name !== 'send' : beside.server === 'gapless';
  return isOurs ? '#2f6fb0' : '#b8bec6';
}

function powersOfTen(low: number, high: number): number[] {
  return Array.from({ length: high - low + 1 }, (_, i) => low + i);
}

function gridLine(x: number, power: number, height: number): string {
  const bottom = height - BOTTOM + 4;
  const label = (10 ** power).toLocaleString('en');
  return [
    `<line x1="${x.toFixed(1)}" x2="${x.toFixed(1)}" y1="${TOP}" y2="${bottom}" stroke="#ddd"/>`,
    text(x, bottom + 16, label, 'text-anchor="middle" fill="#777" font-size="11"'),
  ].join('\n');
}

function text(x: number, y: number, content: string, attributes: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${escaped}</text>`;
}
