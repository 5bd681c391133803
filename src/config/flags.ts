import type { Given, Layer } from './layer.js';
import { badValue, type Problem, unknownName } from './problem.js';
import { SETTINGS, type Setting, type SettingKey } from './schema.js';
import { withoutLikelyUsers } from './without-users.js';

/** What a flag does when it is met: `--auto-create` and `--no-auto-create` are two flags of one setting. */
interface Flag {
  readonly setting: Setting;
  /** What the flag alone means; null where a value has to follow. */
  readonly implied: 'true' | 'false' | null;
}

const FLAGS: ReadonlyMap<string, Flag> = new Map(SETTINGS.flatMap(flagsOf));

/**
 * Reads `--name value`, `--name=value`, `--switch` and `--no-switch`. The last of a flag wins, so that a
 * script's flags can be overridden behind them; those of a list add up.
 */
export function readFlags(argv: readonly string[]): Layer {
  const given = new Map<SettingKey, Given>();
  const problems: Problem[] = [];

  const rest = [...argv];
  for (let argument = rest.shift(); argument !== undefined; argument = rest.shift()) {
    const [name, inlineValue] = splitAtEquals(argument);
    const flag = FLAGS.get(name);
    if (flag === undefined) {
      problems.push(unknownArgument(name));
      if (inlineValue === undefined && mayBeValue(rest[0])) rest.shift();
      continue;
    }
    const { setting, implied } = flag;
    const value = inlineValue ?? implied ?? (mayBeValue(rest[0]) ? rest.shift() : undefined);
    if (value === undefined) {
      problems.push({ where: name, message: `no value, expected ${setting.kind.expected}` });
    } else if (implied === 'false' && inlineValue !== undefined) {
      problems.push(badValue(name, value, 'no value'));
    } else {
      const earlier = setting.kind.repeatable ? given.get(setting.key) : undefined;
      given.set(setting.key, { value: earlier ? `${earlier.value},${value}` : value, where: name });
    }
  }
  return { source: 'flag', given, problems };
}

function flagsOf(setting: Setting): [string, Flag][] {
  if (setting.kind.placeholder !== null) return [[setting.flag, { setting, implied: null }]];
  return [
    [setting.flag, { setting, implied: 'true' }],
    [setting.flag.replace('--', '--no-'), { setting, implied: 'false' }],
  ];
}

function unknownArgument(name: string): Problem {
  if (!name.startsWith('-')) {
    return { where: withoutLikelyUsers(name), message: 'unexpected argument, settings begin with --' };
  }
  return unknownName({ where: name, name, known: [...FLAGS.keys()], what: 'flag' });
}

/** `-1` is a value, if a bad one; `--host` after `--port` means that the port's value was forgotten. */
function mayBeValue(argument: string | undefined): argument is string {
  return argument !== undefined && !argument.startsWith('--');
}

function splitAtEquals(argument: string): [string, string | undefined] {
  const equals = argument.startsWith('--') ? argument.indexOf('=') : -1;
  return equals === -1 ? [argument, undefined] : [argument.slice(0, equals), argument.slice(equals + 1)];
}
