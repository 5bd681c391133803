import type { Given, Layer } from './layer.js';
import { type Problem, unknownName } from './problem.js';
import { ENV_PREFIX, SETTINGS, type SettingKey } from './schema.js';

const KEYS_BY_VARIABLE: ReadonlyMap<string, SettingKey> = new Map(
  SETTINGS.map((setting) => [setting.env, setting.key]),
);

/** What the commands that talk to a broker read; whoever has exported them may start one all the same. */
const OF_CLIENTS: ReadonlySet<string> = new Set(['GAPLESS_URL', 'GAPLESS_TOKEN']);

/**
 * Reads the variables that begin with `GAPLESS_`; one that names no setting is refused as a flag would be.
 */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): Layer {
  const given = new Map<SettingKey, Given>();
  const problems: Problem[] = [];
  const serviceLinks: string[] = [];

  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || !name.startsWith(ENV_PREFIX) || OF_CLIENTS.has(name)) continue;
    const key = KEYS_BY_VARIABLE.get(name);
    if (isServiceLink(name, value)) serviceLinks.push(name);
    else if (key !== undefined) given.set(key, { value, where: name });
    else
      problems.push(
        unknownName({ where: name, name, known: [...KEYS_BY_VARIABLE.keys()], what: 'variable' }),
      );
  }
  if (serviceLinks.length > 0) problems.push(serviceLinkProblem(serviceLinks));
  return { source: 'env', given, problems };
}

/**
 * Kubernetes describes a Service named `gapless` to every pod in such variables, `GAPLESS_PORT` among them.
 * Nobody would guess from "unknown variable" where they come from.
 */
function isServiceLink(name: string, value: string): boolean {
  if (/_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name)) return true;
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value);
}

function serviceLinkProblem(names: readonly string[]): Problem {
  return {
    where: names.join(', '),
    message:
      'set by Kubernetes for a Service whose name begins with gapless, ' +
      'expected `enableServiceLinks: false` in the pod, or another name for the Service',
  };
}
