import { type Problem, unknownName } from '../config/problem.js';
import { withoutLikelyUsers, withoutUsers } from '../config/without-users.js';
import type { SuiteOptions } from '../conformance/suite.js';
import type { Command } from './command.js';
import { EXIT_FAILED, EXIT_OK } from './exit-code.js';
import { printError, printLine, refuse } from './terminal.js';

const FLAGS = ['--url', '--token', '--only', '--json'] as const;

export const conformanceCommand: Command = {
  name: 'conformance',
  summary: 'check a server against the wire contract',
  usage,
  async run(argv) {
    // Loaded here and not above: the broker itself has no use for it.
    const { hasChecks, runSuite } = await import('../conformance/suite.js');
    const { countsOf, reportJson, reportText } = await import('../conformance/report.js');
    const { Mismatch } = await import('../conformance/expect.js');
    const asked = readFlags(argv, hasChecks);
    if (asked.problems.length > 0) return refuse(asked.problems, 'gapless conformance --help');
    try {
      const results = await runSuite(asked.options);
      printLine(asked.isJson ? reportJson(results) : reportText(results));
      return countsOf(results).failed === 0 ? EXIT_OK : EXIT_FAILED;
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
      printError(`nothing to check at ${withoutUsers(asked.options.url.href)}: ${error.message}`);
      return EXIT_FAILED;
    }
  },
};

interface Asked {
  readonly options: SuiteOptions;
  readonly isJson: boolean;
  readonly problems: readonly Problem[];
}

/** Flags are `--name value` or `--name=value`. All that is wrong with them is found at once. */
function readFlags(argv: readonly string[], isSection: (number: string) => boolean): Asked {
  const problems: Problem[] = [];
  const values = new Map<string, string>();
  for (let at = 0; at < argv.length; at++) {
    const [name = '', ...rest] = (argv[at] as string).split('=');
    if (!FLAGS.some((flag) => flag === name))
      problems.push(unknownName({ where: name, name, known: FLAGS, what: 'flag' }));
    else if (values.has(name)) problems.push({ where: name, message: 'given twice' });
    else if (name === '--json') values.set(name, '');
    else if (rest.length > 0) values.set(name, rest.join('='));
    else if (at + 1 < argv.length) values.set(name, argv[++at] as string);
    else problems.push({ where: name, message: 'has no value' });
  }
  const url = readUrl(values.get('--url'), problems);
  const only = values.get('--only')?.split(',');
  for (const number of only ?? [])
    if (!isSection(number))
      problems.push({ where: '--only', message: `${number} is no section with checks` });
  return { options: { url, token: values.get('--token'), only }, isJson: values.has('--json'), problems };
}

function readUrl(text: string | undefined, problems: Problem[]): URL {
  const url = URL.canParse(text ?? '') ? new URL(text ?? '') : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  const message =
    text === undefined
      ? 'is missing'
      : `${JSON.stringify(withoutLikelyUsers(text))}, expected http://… or https://…`;
  problems.push({ where: '--url', message });
  return new URL('http://127.0.0.1');
}

function usage(): string {
  return [
    'Usage: gapless conformance --url URL [--token TOKEN] [--only SECTIONS] [--json]',
    '',
    'Checks the server at URL against the wire contract, section by section, from outside. It makes streams',
    'whose names begin with `conformance-`, and removes them. What a check would need of the server, and this',
    'one has not, is skipped with the reason. Exit code: 0, or 1 when a check failed.',
    '  --url URL        where the server is, such as http://127.0.0.1:8080',
    '  --token TOKEN    sent as a bearer token with every request',
    '  --only SECTIONS  such as 3,4.4',
    '  --json           the results as one JSON object',
  ].join('\n');
}
