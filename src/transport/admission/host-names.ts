/**
 * By which names a server that asks nobody who they are may be called (contract 9.2). The owner of a name may have it lead
 * to this machine (DNS rebinding): to a browser here the page of that name is then of this server's own origin, and may read
 * what it answers. Nobody from outside can be called by an address, by `localhost`, or by a name without a dot.
 */

import type { HttpRequest } from 'uWebSockets.js';
import { isIP } from 'node:net';
import { RequestError } from '../../errors.js';

const HOST = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/;

export class HostNames {
  /** Null: any name will do. */
  readonly #names: ReadonlySet<string> | null;
  /** Clients of a server nearly all call it the same. */
  #lastAllowed = '';

  /** @param names in any case, which are good as well; null: there are keys, or others keep strangers out. */
  constructor(names: readonly string[] | null) {
    this.#names = names === null ? null : new Set(names.map((name) => name.toLowerCase()));
  }

  /** Hot path: a header and a comparison. @throws {RequestError} `host_not_allowed` */
  check(req: HttpRequest): void {
    if (this.#names === null) return;
    const host = req.getHeader('host');
    if (host === this.#lastAllowed) return;
    if (!this.#allows(host, this.#names)) throw new RequestError('host_not_allowed');
    this.#lastAllowed = host;
  }

  #allows(host: string, names: ReadonlySet<string>): boolean {
    const match = HOST.exec(host.toLowerCase());
    if (match === null) return false;
    const [, address, given = ''] = match;
    if (address !== undefined) return isIP(address) === 6;
    // The root may be written out (RFC 1034, 3.1).
    const name = given.endsWith('.') ? given.slice(0, -1) : given;
    return !name.includes('.') || isIP(name) === 4 || name.endsWith('.localhost') || names.has(name);
  }
}
