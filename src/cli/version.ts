import { readFileSync } from 'node:fs';

/** The version in `package.json`, which lies two folders above this file once it is built. */
export function packageVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
