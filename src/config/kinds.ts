import { z } from 'zod';
import { formatSize, formatTime, parseSize, parseTime } from './units.js';

/** How one kind of value is read, checked and shown. The settings of `schema.ts` are made of these. */
export interface Kind<T> {
  /** Takes the text of a flag or an environment variable, and equally the JSON value of a config file. */
  readonly schema: z.ZodType<T>;
  /** Completes the sentence "expected …": the form, the bounds and the unit. */
  readonly expected: string;
  /** The same in short, for a table whose reader knows the form. */
  readonly accepted: string;
  /** Unit of the value in `Config`; empty for words and names. */
  readonly unit: string;
  /** Stands for the value in usage text; `null` for a switch, whose flag takes none. */
  readonly placeholder: string | null;
  /** Whether a repeated flag adds to the value instead of replacing it. */
  readonly repeatable: boolean;
  /** The value as text that the schema reads back. */
  show(value: T): string;
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** A count, or any other number that has no unit to scale. */
export function wholeNumber({ min, max, unit = '' }: Bounds & { unit?: string }): Kind<number> {
  const ofUnit = unit === '' ? '' : ` of ${unit}`;
  return {
    schema: z.preprocess(fromText(readWholeNumber), z.int().min(min).max(max)),
    expected: `a whole number${ofUnit} from ${min} to ${max}`,
    accepted: `${min} to ${max}`,
    unit,
    placeholder: 'NUMBER',
    repeatable: false,
    show: String,
  };
}

/** Bytes; text may say KiB, MiB or GiB. */
export function size({ min, max }: Bounds): Kind<number> {
  return {
    schema: z.preprocess(fromText(parseSize), z.int().min(min).max(max)),
    expected: `a size from ${formatSize(min)} to ${formatSize(max)}, in bytes or with KiB, MiB or GiB`,
    accepted: `${formatSize(min)} to ${formatSize(max)}`,
    unit: 'bytes',
    placeholder: 'SIZE',
    repeatable: false,
    show: formatSize,
  };
}

/** Milliseconds; text may say s, m, h or d. */
export function time({ min, max }: Bounds): Kind<number> {
  return {
    schema: z.preprocess(fromText(parseTime), z.int().min(min).max(max)),
    expected: `a time from ${formatTime(min)} to ${formatTime(max)}, in milliseconds or with s, m, h or d`,
    accepted: `${formatTime(min)} to ${formatTime(max)}`,
    unit: 'ms',
    placeholder: 'TIME',
    repeatable: false,
    show: formatTime,
  };
}

/** Yes or no: as a flag `--name` and `--no-name`. */
export function onOff(): Kind<boolean> {
  return {
    schema: z.preprocess(fromText(readBoolean), z.boolean()),
    expected: 'true or false',
    accepted: 'true or false',
    unit: '',
    placeholder: null,
    repeatable: false,
    show: String,
  };
}

/** One of a few words. */
export function choice<const Words extends readonly string[]>(words: Words): Kind<Words[number]> {
  return {
    schema: z.enum(words) as z.ZodType<Words[number]>,
    expected: `one of ${words.join(', ')}`,
    accepted: words.join(', '),
    unit: '',
    placeholder: 'WORD',
    repeatable: false,
    show: (word) => word,
  };
}

interface TextForm {
  readonly placeholder: string;
  readonly expected: string;
  isValid(text: string): boolean;
}

/** A text that `isValid` accepts. */
export function text({ placeholder, expected, isValid }: TextForm): Kind<string> {
  return {
    schema: z.string().refine(isValid),
    expected,
    accepted: expected,
    unit: '',
    placeholder,
    repeatable: false,
    show: String,
  };
}

/** A path; null where none is given. */
export function path(placeholder: string): Kind<string | null> {
  return {
    schema: z.string().min(1).nullable(),
    expected: 'a path',
    accepted: 'a path',
    unit: '',
    placeholder,
    repeatable: false,
    show: (value) => value ?? '',
  };
}

/**
 * Several texts, with commas between them, or an array in JSON. An empty text is an empty list.
 * @param split takes a text that is not empty apart, where an item may hold a comma itself.
 */
export function list({
  placeholder,
  expected,
  isValid,
  itemsMax,
  split = splitAtCommas,
}: TextForm & { itemsMax: number; split?: (joined: string) => string[] }): Kind<readonly string[]> {
  const readList = (joined: string): string[] => (joined === '' ? [] : split(joined));
  return {
    schema: z.preprocess(fromText(readList), z.array(z.string().refine(isValid)).max(itemsMax)),
    expected: `a list with commas, at most ${itemsMax} items, each ${expected}`,
    accepted: `each ${expected}`,
    unit: '',
    placeholder: `${placeholder},...`,
    repeatable: true,
    show: (items) => items.join(','),
  };
}

/**
 * Values other than text, and text that cannot be read, pass as they are: the schema behind then refuses
 * them.
 */
function fromText(read: (text: string) => unknown): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' ? (read(value) ?? value) : value);
}

function readWholeNumber(digits: string): number | undefined {
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined;
}

function readBoolean(word: string): boolean | undefined {
  if (word === 'true') return true;
  if (word === 'false') return false;
  return undefined;
}

function splitAtCommas(joined: string): string[] {
  return joined.split(',').map((item) => item.trim());
}
