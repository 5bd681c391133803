/**
 * Small JSON bodies of requests that are no publish.
 */

import { RequestError } from '../../errors.js';
import type { Exchange } from './exchange.js';
import type { RequestView } from './request-view.js';

const JSON_BYTES_MAX = 16 * 1024;

/**
 * Reads a body, and undefined where there is none. Call it while the request is there.
 * @throws {RequestError} `body_too_large`, `unsupported_type`, `invalid_body`
 */
export function readJson(exchange: Exchange, req: RequestView): Promise<unknown> {
  const type = (req.getHeader('content-type').split(';')[0] as string).trim().toLowerCase();
  exchange.watch();
  return new Promise((resolve, reject) => {
    exchange.readBody(JSON_BYTES_MAX, (body) => {
      try {
        if (body === null) {
          throw new RequestError('body_too_large', `expected at most ${JSON_BYTES_MAX} bytes`);
        }
        resolve(body.length === 0 ? undefined : parseJson(type, body));
      } catch (error) {
        reject(error);
      }
    });
  });
}

function parseJson(type: string, body: Uint8Array): unknown {
  if (type !== '' && type !== 'application/json' && type !== 'application/x-www-form-urlencoded') {
    throw new RequestError('unsupported_type', 'expected application/json');
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new RequestError('invalid_body', 'expected a JSON object');
  }
}
