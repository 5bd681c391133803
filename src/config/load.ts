import { type ReadFile, readConfigFile } from './config-file.js';
import { readEnvironment } from './environment.js';
import { readFlags } from './flags.js';
import type { Given, Layer, Source } from './layer.js';
import { badValue, type Problem } from './problem.js';
import { checkRelations, fitDefaults, type Settings } from './relations.js';
import { type Config, SETTINGS, type Setting, type SettingKey } from './schema.js';

export type LoadedConfig =
  | ({ readonly outcome: 'loaded' } & Settings)
  | { readonly outcome: 'refused'; readonly problems: readonly Problem[] };

/**
 * Puts the settings together: a flag wins over the environment, the environment over the config file, the
 * file over the default. Refused with every problem there is, also those of values that another one overrides
 * (contract 11).
 */
export function loadConfig(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: ReadFile,
): LoadedConfig {
  const layers = readLayers(argv, env, readFile);
  const problems = layers.flatMap((layer) => [...layer.problems, ...checkValues(layer)]);
  // Relations between values that are wrong by themselves would only repeat what is said already.
  if (problems.length > 0) return { outcome: 'refused', problems };

  const settings = merge(layers);
  const config = fitDefaults(settings);
  const whereIs = (key: SettingKey) => find(layers, key)?.where ?? `the default of ${key}`;
  const conflicts = checkRelations({ config, whereIs });
  if (conflicts.length > 0) return { outcome: 'refused', problems: conflicts };
  return { outcome: 'loaded', config, sources: settings.sources };
}

/** What each source gives, the strongest first. */
function readLayers(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: ReadFile,
): Layer[] {
  const layers = [readFlags(argv), readEnvironment(env)];
  const path = find(layers, 'config')?.value;
  if (typeof path === 'string' && path !== '') layers.push(readConfigFile(path, readFile));
  return layers;
}

function checkValues({ given }: Layer): Problem[] {
  return SETTINGS.flatMap(({ key, kind }) => {
    const entry = given.get(key);
    if (entry === undefined || kind.schema.safeParse(entry.value).success) return [];
    return [badValue(entry.where, entry.value, kind.expected)];
  });
}

function merge(layers: readonly Layer[]): Settings {
  const values = SETTINGS.map((setting) => [setting.key, valueInForce(setting, layers)]);
  const sources = SETTINGS.map(({ key }) => [key, find(layers, key)?.source ?? 'default']);
  // One entry for each key, each read by the schema that the type was made from.
  return {
    config: Object.fromEntries(values) as Config,
    sources: Object.fromEntries(sources) as Record<SettingKey, Source>,
  };
}

function valueInForce({ key, kind, default: fallback }: Setting, layers: readonly Layer[]): unknown {
  const entry = find(layers, key);
  return entry === undefined ? fallback : kind.schema.parse(entry.value);
}

function find(layers: readonly Layer[], key: SettingKey): (Given & Pick<Layer, 'source'>) | undefined {
  for (const { source, given } of layers) {
    const entry = given.get(key);
    if (entry !== undefined) return { ...entry, source };
  }
  return undefined;
}
