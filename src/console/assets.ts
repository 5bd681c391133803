/**
 * What the console at `/console` consists of (contract 10): a document, a style, an icon, and the modules of its page as
 * they were built, with those of `gapless/client` that they import. Read once, at start.
 */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { consoleDocument } from './document.js';
import { ICON } from './icon.js';
import { STYLE } from './style.js';

export interface Asset {
  readonly type: string;
  readonly body: string;
  /** Strong: the same tag, the same bytes (RFC 9110, 8.8.3). */
  readonly etag: string;
}

/** By what comes after `/console` in the path; the document has nothing there. */
export type ConsoleAssets = ReadonlyMap<string, Asset>;

/** The folder that `dist` is when this runs: modules are served from the same places beside each other as there. */
const BUILT = dirname(dirname(fileURLToPath(import.meta.url)));
const ENTRY = 'console/page/main.js';
const IMPORT = /\b(?:from|import)\s*'(\.{1,2}\/[^']+)'/g;

/**
 * @param needsToken whether the broker has keys: who comes without a token is asked for it, and not refused first.
 * @throws an error of the system when a module is missing: the build is not whole.
 */
export function loadConsole(needsToken: boolean): ConsoleAssets {
  const modules = readModules();
  const preloads = [...modules.keys()].map((path) => `console/modules/${path}`);
  const assets = new Map<string, Asset>([
    [
      '',
      asset(
        'text/html; charset=utf-8',
        consoleDocument({ entry: `console/modules/${ENTRY}`, preloads, needsToken }),
      ),
    ],
    ['/style.css', asset('text/css; charset=utf-8', STYLE)],
    ['/icon.svg', asset('image/svg+xml', ICON)],
  ]);
  for (const [path, text] of modules) {
    assets.set(`/modules/${path}`, asset('text/javascript; charset=utf-8', text));
  }
  return assets;
}

/** The entry and all that it imports, by path below `dist`. */
function readModules(): Map<string, string> {
  const modules = new Map<string, string>();
  const wanted = [ENTRY];
  for (let path = wanted.pop(); path !== undefined; path = wanted.pop()) {
    if (modules.has(path)) continue;
    const text = readFileSync(`${BUILT}/${path}`, 'utf8');
    modules.set(path, text);
    for (const [, specifier = ''] of text.matchAll(IMPORT)) {
      wanted.push(posix.join(posix.dirname(path), specifier));
    }
  }
  return modules;
}

function asset(type: string, body: string): Asset {
  const hash = createHash('sha256').update(body).digest('base64url');
  return { type, body, etag: `"${hash}"` };
}
