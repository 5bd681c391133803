/** How numbers and times are shown. Pure. */

const COUNT = new Intl.NumberFormat('en');
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

export function count(value: number): string {
  return COUNT.format(value);
}

/** "1 event", "2 events". */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

export function byteSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits).replace(/\.0$/, '')} ${unit === 0 && value === 1 ? 'byte' : UNITS[unit]}`;
}

/** The time of day, to the second. */
export function clockTime(unixMs: number): string {
  return CLOCK.format(unixMs);
}

export function duration(ms: number): string {
  if (ms < 60_000) return `${Math.round(ms / 100) / 10} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 6000) / 10} min`;
  if (ms < 86_400_000) return `${Math.round(ms / 360_000) / 10} h`;
  return `${Math.round(ms / 8_640_000) / 10} days`;
}

/** What a retention keeps, in words. */
export function retentionInWords({
  events = 0,
  bytes = 0,
  ageMs = 0,
}: {
  events?: number;
  bytes?: number;
  ageMs?: number;
}): string {
  const parts = [
    events > 0 ? counted(events, 'event') : '',
    bytes > 0 ? byteSize(bytes) : '',
    ageMs > 0 ? duration(ageMs) : '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'no limit of its own' : `the newest ${parts.join(', or ')}`;
}
