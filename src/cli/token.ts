import type { Command } from './command.js';
import { EXIT_USAGE } from './exit-code.js';
import { refuse } from './terminal.js';

type Action = (argv: readonly string[]) => Promise<number>;

/** Loaded when one is asked for: the other commands have no use for a library that signs, and a start does not wait for it. */
const ACTIONS: ReadonlyMap<string, () => Promise<Action>> = new Map([
  ['make', async () => (await import('./token-make.js')).makeToken],
  ['explain', async () => (await import('./token-explain.js')).explainToken],
  ['keys', async () => (await import('./token-keys.js')).makeKeys],
  ['api-key', async () => (await import('./token-keys.js')).makeApiKey],
]);

export const tokenCommand: Command = {
  name: 'token',
  summary: 'make and explain tokens and keys',
  usage,
  async run([action, ...rest]) {
    const load = ACTIONS.get(action ?? '');
    if (load !== undefined) return (await load())(rest);
    const message = `expected one of ${[...ACTIONS.keys()].join(', ')}`;
    refuse([{ where: `token ${action ?? ''}`.trim(), message }], 'gapless token --help');
    return EXIT_USAGE;
  },
};

function usage(): string {
  return [
    'Usage: gapless token make --key FILE --expires TIME [--subject TEXT] [RIGHTS] [--issuer TEXT] [--audience TEXT]',
    '       gapless token explain [--jwt-keys-file FILE] [--issuer TEXT] [--audience TEXT] < TOKEN',
    '       gapless token keys --alg ALG --private FILE --public FILE',
    '       gapless token api-key --id TEXT [RIGHTS]',
    '',
    'make      signs a token with a private key, or a shared secret, as `keys` makes them, and prints it.',
    'explain   reads a token from standard input, and says what it grants, until when, and whether the',
    '          keys accept it: exit code 1 if they do not. Without keys it says what the token claims.',
    'keys      makes a key pair, or for HS256 a secret: --public is for the broker (--jwt-keys-file),',
    '          --private for who signs. ALG is HS256, RS256, ES256 or EdDSA. No file is overwritten.',
    'api-key   makes a static key, which is shown once, and its entry for --api-keys-file.',
    '',
    'RIGHTS:   --publish PATTERN, --subscribe PATTERN (both as often as needed), --admin, --metrics.',
    '          A PATTERN is the name of a stream, or the beginning of one and *. TIME is such as 90s, 1h, 30d.',
  ].join('\n');
}
