/**
 * Sizes and times as people write them: `256MiB`, `15s`, or the plain number of bytes or milliseconds.
 * Sizes are powers of 1024 only: the rings they describe are, and `MB` would leave a reader guessing.
 */

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;
export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const YEAR_MS = 365 * DAY_MS;

interface UnitStep {
  readonly suffix: string;
  readonly factor: number;
}

/** Largest first, so that the first step which divides a value evenly gives its shortest form. */
const SIZE_STEPS: readonly UnitStep[] = [
  { suffix: 'GiB', factor: GIB },
  { suffix: 'MiB', factor: MIB },
  { suffix: 'KiB', factor: KIB },
  { suffix: '', factor: 1 },
];

const TIME_STEPS: readonly UnitStep[] = [
  { suffix: 'd', factor: DAY_MS },
  { suffix: 'h', factor: HOUR_MS },
  { suffix: 'm', factor: MINUTE_MS },
  { suffix: 's', factor: SECOND_MS },
  { suffix: 'ms', factor: 1 },
];

const AMOUNT = /^(\d{1,15})([A-Za-z]*)$/;

/** Bytes of a size such as `64KiB` or `4096`; undefined when the text is not one. */
export function parseSize(text: string): number | undefined {
  return parseAmount(text, SIZE_STEPS);
}

/** Milliseconds of a time such as `15s` or `250`; undefined when the text is not one. */
export function parseTime(text: string): number | undefined {
  return parseAmount(text, TIME_STEPS);
}

/** The shortest text that `parseSize` reads back as these bytes. */
export function formatSize(bytes: number): string {
  return formatAmount(bytes, SIZE_STEPS);
}

/** The shortest text that `parseTime` reads back as these milliseconds. */
export function formatTime(ms: number): string {
  return formatAmount(ms, TIME_STEPS);
}

function parseAmount(text: string, steps: readonly UnitStep[]): number | undefined {
  const [, digits, suffix] = AMOUNT.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const factor = suffix === '' ? 1 : steps.find((step) => step.suffix === suffix)?.factor;
  return factor === undefined ? undefined : Number(digits) * factor;
}

function formatAmount(value: number, steps: readonly UnitStep[]): string {
  // Every step divides zero; a bare 0 reads better than "0d".
  if (value === 0) return '0';
  const step = steps.find(({ factor }) => value % factor === 0);
  return step === undefined ? String(value) : `${value / step.factor}${step.suffix}`;
}
