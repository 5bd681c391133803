import type { Given, Layer } from './layer.js';
import { badValue, type Problem, unknownName } from './problem.js';
import { SETTINGS, type SettingKey } from './schema.js';

/** Text of a file; throws when it cannot be read. */
export type ReadFile = (path: string) => string;

const KEYS: readonly SettingKey[] = SETTINGS.map((setting) => setting.key).filter((key) => key !== 'config');

/** Reads one JSON object whose keys are those of the settings. */
export function readConfigFile(path: string, readFile: ReadFile): Layer {
  const given = new Map<SettingKey, Given>();
  const problems: Problem[] = [];

  for (const [name, value] of Object.entries(readObject(path, readFile, problems))) {
    const where = `${name} in ${path}`;
    const key = KEYS.find((known) => known === name);
    if (key !== undefined) given.set(key, { value, where });
    else if (name === 'config') problems.push({ where, message: 'a config file cannot name another' });
    else problems.push(unknownName({ where, name, known: KEYS, what: 'key' }));
  }
  return { source: 'file', given, problems };
}

function readObject(path: string, readFile: ReadFile, problems: Problem[]): object {
  let content: unknown;
  try {
    content = JSON.parse(readFile(path));
  } catch (error) {
    const what = error instanceof SyntaxError ? 'not JSON' : 'cannot be read';
    problems.push({ where: path, message: `${what}: ${(error as Error).message}` });
    return {};
  }
  if (typeof content === 'object' && content !== null && !Array.isArray(content)) return content;
  problems.push(badValue(path, content, 'one JSON object'));
  return {};
}
