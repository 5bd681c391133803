import type { Problem } from '../config/problem.js';
import { type Grant, readGrant } from '../core/grant.js';
import { type FlagValues, textsOf } from './command-flags.js';

/** The flags by which a token or key is given rights. */
export const RIGHTS_OPTIONS = {
  publish: { type: 'string', multiple: true },
  subscribe: { type: 'string', multiple: true },
  admin: { type: 'boolean' },
  metrics: { type: 'boolean' },
} as const;

export function readRights(values: FlagValues, problems: Problem[]): Grant | null {
  const grant = readGrant({
    publish: textsOf(values, 'publish'),
    subscribe: textsOf(values, 'subscribe'),
    admin: values.admin === true,
    metrics: values.metrics === true,
  });
  if (grant === null) {
    const message = 'expected stream names, or beginnings of them and a final *';
    problems.push({ where: '--publish, --subscribe', message });
  }
  return grant;
}
