/**
 * Settings as they may be shown to somebody else. Keys are in files, whose names are no secret; but a URL may have a
 * password or a token in it.
 */

import type { Settings } from '../config/relations.js';
import { SETTINGS } from '../config/schema.js';
import { withoutUsers } from '../config/without-users.js';

export interface ShownSetting {
  readonly key: string;
  readonly value: string;
  readonly source: string;
}

const SECRET_KEY = /(?:token|secret|password|credential)(?!.*File$)/i;

/** Those that are not what they are by default, as one would write them. */
export function settingsWithoutSecrets({ config, sources }: Settings): ShownSetting[] {
  return SETTINGS.filter(({ key }) => sources[key] !== 'default').map(({ key, kind }) => {
    const value = config[key];
    const isSecret = SECRET_KEY.test(key) && typeof value === 'string' && value !== '';
    const shown = Array.isArray(value)
      ? value.map((item) => withoutSecrets(String(item))).join(',')
      : withoutSecrets(kind.show(value));
    return { key, value: isSecret ? '(set)' : shown, source: sources[key] };
  });
}

/**
 * Of each URL in a text only where it leads: who, which path and which query may all be secrets. Of the command of an MCP
 * server only its program, for arguments are where such servers are told their tokens.
 */
export function withoutSecrets(given: string): string {
  const text = withoutUsers(given);
  const command = /\bstdio:(?:"[^"]*"|'[^']*'|\S*)/.exec(text);
  if (command !== null) {
    const end = command.index + command[0].length;
    return `${withoutSecrets(text.slice(0, command.index))}${command[0]}${end < text.length ? ' …' : ''}`;
  }
  return text.replace(/[a-z][a-z0-9+.-]*:\/\/[^\s,"')]*/gi, (url) => {
    if (!URL.canParse(url)) return '(a URL that cannot be read)';
    const { protocol, host, pathname, username, search, hash } = new URL(url);
    const isBare = pathname.length <= 1 && username === '' && search === '' && hash === '';
    return `${protocol}//${host}${isBare ? '' : '/…'}`;
  });
}
