import type { Group } from './definition.js';
import { SETTINGS, type Setting } from './schema.js';

/** The settings in their order, by heading. */
export function settingsByGroup(): ReadonlyMap<Group, readonly Setting[]> {
  const groups = new Map<Group, Setting[]>();
  for (const setting of SETTINGS) {
    const members = groups.get(setting.group);
    if (members === undefined) groups.set(setting.group, [setting]);
    else members.push(setting);
  }
  return groups;
}

/** The README's section on settings, in Markdown, without a final line break. */
export function settingsTable(): string {
  return [...settingsByGroup()].map(([group, settings]) => groupTable(group, settings)).join('\n\n');
}

function groupTable(group: Group, settings: readonly Setting[]): string {
  return [
    `**${group}**`,
    '',
    '| Key, flag, variable | Default | Accepted | Meaning |',
    '|---|---|---|---|',
    ...settings.map(row),
  ].join('\n');
}

function row({ key, flag, env, kind, default: fallback, doc }: Setting): string {
  const names = [key, flag, env].map(code).join('<br>');
  const shown = kind.show(fallback);
  const cells = [names, shown === '' ? '' : code(shown), kind.accepted, doc];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}
