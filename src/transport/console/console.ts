/**
 * The console at `/console` and what it is made of (contract 10). It has nothing that is anybody's: what it shows it asks
 * for, with the token of who looks at it.
 */

import type { ConsoleAssets } from '../../console/assets.js';
import { RequestError } from '../../errors.js';
import type { Exchange, Headers } from '../http/exchange.js';
import type { RequestView } from '../http/request-view.js';

/** Nothing of others, nothing inline, and no text that becomes markup. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const PREFIX = '/console';

const HEADERS: Headers = {
  // Kept, and asked for again each time: after an update nobody has a page of one version with modules of another.
  'Cache-Control': 'no-cache',
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

export function showConsole(
  exchange: Exchange,
  assets: ConsoleAssets,
  req: RequestView & { getUrl(): string },
): void {
  const path = req.getUrl().slice(PREFIX.length);
  if (path === '/') {
    exchange.answer(308, { Location: '../console' }, (res) => res.end());
    return;
  }
  const asset = assets.get(path);
  if (asset === undefined) throw new RequestError('not_found');
  const { type, body, etag } = asset;
  const headers = { ...HEADERS, ETag: etag };
  if (isKnown(req.getHeader('if-none-match'), etag)) {
    exchange.answer(304, headers, (res) => res.endWithoutBody());
    return;
  }
  exchange.send(200, { 'Content-Type': type, ...headers }, body);
}

/** RFC 9110, 13.1.2: a weak tag, as a proxy that compresses makes of ours, is the same here. */
function isKnown(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((known) => known.trim().replace(/^W\//, '') === etag);
}
