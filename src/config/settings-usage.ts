import { SETTINGS, type Setting } from './schema.js';
import { settingsByGroup } from './settings-table.js';
import { wrap } from './wrap.js';

const LINE_LENGTH = 100;
const DOC_COLUMN = 34;

/** The settings as flags, for a terminal, without a final line break. */
export function settingsUsage(): string {
  const sections = [...settingsByGroup()].map(([group, settings]) =>
    [`${group}:`, ...settings.flatMap(usageLines)].join('\n'),
  );
  return sections.join('\n\n');
}

function usageLines(setting: Setting): string[] {
  const { kind, default: fallback, doc } = setting;
  const shown = kind.show(fallback);
  const values = [kind.placeholder === null ? '' : kind.accepted, shown === '' ? '' : `default ${shown}`];
  const note = values.filter((value) => value !== '').join('; ');
  const lines = wrap(`${withFlags(doc)} (${note})`, LINE_LENGTH - DOC_COLUMN);

  const label = `  ${flagLabel(setting)}`;
  const indented = lines.map((line) => ' '.repeat(DOC_COLUMN) + line);
  if (label.length + 2 > DOC_COLUMN) return [label, ...indented];
  return [label.padEnd(DOC_COLUMN) + lines[0], ...indented.slice(1)];
}

function flagLabel({ flag, kind }: Setting): string {
  return kind.placeholder === null ? flag.replace('--', '--[no-]') : `${flag} ${kind.placeholder}`;
}

/** At a terminal a setting goes by its flag, so the keys that docs refer to become flags. */
function withFlags(doc: string): string {
  return doc.replace(
    /`([^`]+)`/g,
    (_, name: string) => SETTINGS.find(({ key }) => key === name)?.flag ?? name,
  );
}
