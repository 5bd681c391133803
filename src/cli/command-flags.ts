import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { Problem } from '../config/problem.js';

type Options = NonNullable<ParseArgsConfig['options']>;

export type FlagValues = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

/** Reads the flags of a command that takes no settings; unknown ones, and missing values, are problems. */
export function readCommandFlags(
  argv: readonly string[],
  options: Options,
): { values: FlagValues; positionals: string[]; problems: Problem[] } {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options,
      allowPositionals: true,
      strict: true,
    });
    return { values: values as FlagValues, positionals, problems: [] };
  } catch (error) {
    return { values: {}, positionals: [], problems: [{ where: 'flags', message: (error as Error).message }] };
  }
}

export function textOf(values: FlagValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

export function textsOf(values: FlagValues, name: string): string[] {
  const value = values[name];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
