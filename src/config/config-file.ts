import type { Given, Layer } from './layer.js';
import { badValue, type Problem, unknownName } from './problem.js';
import { SETTINGS, type SettingKey } from './schema.js';
import { withoutLikelyUsers } from './without-users.js';

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
  let text = '';
  let content: unknown;
  try {
    text = readFile(path);
    content = JSON.parse(text);
  } catch (error) {
    const { message } = error as Error;
    const what = error instanceof SyntaxError ? 'not JSON' : 'cannot be read';
    // Of a text the message may have a piece, and that a piece of a password.
    const mayTell = withoutLikelyUsers(text) === text;
    problems.push({ where: path, message: mayTell ? `${what}: ${message}` : what });
    return {};
  }
  if (typeof content === 'object' && content !== null && !Array.isArray(content)) return content;
  problems.push(badValue(path, content, 'one JSON object'));
  return {};
}
