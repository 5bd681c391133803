import type { Result, ResultTarget, ScenarioResult } from './result.js';

interface Column {
  readonly heading: string;
  readonly align: 'left' | 'right';
  readonly cell: (result: ScenarioResult) => string;
}

const COLUMNS: readonly Column[] = [
  { heading: 'scenario', align: 'left', cell: (r) => r.name },
  { heading: 'median', align: 'right', cell: (r) => amount(r.spread?.median) },
  { heading: 'min', align: 'right', cell: (r) => amount(r.spread?.min) },
  { heading: 'max', align: 'right', cell: (r) => amount(r.spread?.max) },
  { heading: '', align: 'left', cell: (r) => r.unit },
  { heading: 'times', align: 'right', cell: (r) => r.ratio?.median.toFixed(2) ?? '' },
  { heading: 'of', align: 'left', cell: (r) => r.of ?? '' },
  { heading: 'per CPU', align: 'right', cell: (r) => r.ratioPerCpu?.median.toFixed(2) ?? '' },
  { heading: 'target', align: 'right', cell: (r) => targetText(r.target) },
  { heading: '', align: 'left', cell: (r) => r.verdict },
  { heading: 'server', align: 'right', cell: (r) => percent(r.serverCpu) },
  { heading: 'load', align: 'right', cell: (r) => percent(r.loadCpu) },
  { heading: 'publish p50', align: 'right', cell: (r) => microseconds(r.publishLatencyP50Us) },
  { heading: 'p99', align: 'right', cell: (r) => microseconds(r.publishLatencyP99Us) },
  { heading: '', align: 'left', cell: (r) => r.fault ?? (r.clientBound ? 'client-bound or disturbed' : '') },
];

/** The result for people. */
export function formatTable(result: Result): string {
  const { environment: at, settings } = result;
  const pinning = settings.pinned ? 'one core for the server and one for the load' : 'NOT PINNED to cores';
  const commit = at.gitDirty ? `${at.gitSha} with changes` : at.gitSha;
  const columns = COLUMNS.map((column) => layOut(column, result.scenarios));
  const rowCount = 1 + result.scenarios.length;
  const rows = Array.from({ length: rowCount }, (_, row) => columns.map((cells) => cells[row]).join('  '));
  return [
    `${at.date}, ${commit}, Node ${at.node}, ${at.cpu}, ${at.cores} cores`,
    `${settings.subscribers} subscribers, ${settings.eventBytes}-byte events, rounds: ${settings.runs}, ` +
      `${settings.durationMs / 1000} s a measurement, ${pinning}`,
    '',
    ...rows.map((row) => row.trimEnd()),
    '',
  ].join('\n');
}

/** The cells of a column from its heading down, all of one width. */
function layOut(column: Column, results: readonly ScenarioResult[]): string[] {
  const cells = [column.heading, ...results.map(column.cell)];
  const width = Math.max(...cells.map((cell) => cell.length));
  return cells.map((cell) => (column.align === 'left' ? cell.padEnd(width) : cell.padStart(width)));
}

function targetText(target: ResultTarget | null): string {
  if (target === null) return '';
  if (target.kind === 'amount') return `<= ${whole(target.bound)}`;
  return `${target.kind === 'atLeast' ? '>=' : '<='} ${Number(target.bound.toFixed(2))} x`;
}

function percent(share: number | null): string {
  return share === null ? '' : `${Math.round(share * 100)} %`;
}

function microseconds(value: number | null): string {
  return value === null ? '' : `${whole(value)} us`;
}

function amount(value: number | undefined): string {
  return value === undefined ? '' : whole(value);
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
