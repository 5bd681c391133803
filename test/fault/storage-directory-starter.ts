import { DataDirectoryError, openDataDirectory } from '#gapless/storage/directory/data-directory.js';

/** Starts when it is told to, says what came of it, and stays until its input ends. `user` is who it is from then on. */

const [path = '', user] = process.argv.slice(2);
if (user !== undefined) process.setuid?.(Number(user));
process.stdout.write('ready\n');
process.stdin.once('data', () => void start());
process.stdin.once('end', () => process.exit(0));

async function start(): Promise<void> {
  try {
    await openDataDirectory(path);
    process.stdout.write('owned\n');
  } catch (error) {
    if (!(error instanceof DataDirectoryError)) throw error;
    process.stdout.write(`${error.message}\n`);
  }
}
