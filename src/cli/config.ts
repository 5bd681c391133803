import type { Settings } from '../config/relations.js';
import { settingsJson, settingsListing } from '../config/settings-listing.js';
import { settingsTable } from '../config/settings-table.js';
import type { Command } from './command.js';
import { EXIT_OK } from './exit-code.js';
import { loadSettings, settingsHelp } from './settings.js';
import { printLine, refuse } from './terminal.js';

const FORMATS: ReadonlyMap<string, (settings: Settings) => string> = new Map([
  ['--json', settingsJson],
  ['--markdown', settingsTable],
]);

export const configCommand: Command = {
  name: 'config',
  summary: 'print the settings in force, with where each came from',
  usage,
  async run(argv) {
    const [format, ...otherFormats] = argv.filter((argument) => FORMATS.has(argument));
    const settings = loadSettings(argv.filter((argument) => !FORMATS.has(argument)));
    const problems = settings.outcome === 'refused' ? [...settings.problems] : [];
    if (otherFormats.length > 0)
      problems.push({ where: otherFormats.join(', '), message: 'one format is enough' });
    if (settings.outcome === 'refused' || problems.length > 0)
      return refuse(problems, 'gapless config --help');

    const print = FORMATS.get(format ?? '') ?? settingsListing;
    printLine(print(settings));
    return EXIT_OK;
  },
};

function usage(): string {
  return [
    'Usage: gapless config [--json | --markdown] [SETTINGS]',
    '',
    'Prints what `gapless serve` would run with if it were given the same settings.',
    '  --json      as JSON, sizes in bytes and times in milliseconds',
    '  --markdown  the table of all settings, whatever is in force',
    '',
    settingsHelp(),
  ].join('\n');
}
