/**
 * What handlers read of a request. The library's own request lives only while its callback runs; a copy stands in for it
 * where the handler runs later.
 */

import type { HttpRequest } from 'uWebSockets.js';

export type RequestView = Pick<HttpRequest, 'getHeader' | 'getUrl' | 'getMethod' | 'forEach'> & {
  getParameter(index: number): string;
  getQuery(): string | undefined;
};

/** A request that outlives its callback. Cold path: it copies the headers, for as long as a signature takes. */
export function keepRequest(req: HttpRequest): RequestView {
  const headers = new Map<string, string>();
  req.forEach((name, value) => headers.set(name, value));
  const url = req.getUrl();
  const method = req.getMethod();
  const query = req.getQuery();
  // No route has a third one.
  const parameters = [req.getParameter(0), req.getParameter(1)];
  return {
    getHeader: (name) => headers.get(name as string) ?? '',
    forEach: (take) => headers.forEach((value, name) => take(name, value)),
    getUrl: () => url,
    getMethod: () => method,
    getQuery: () => query,
    getParameter: (index) => parameters[index] ?? '',
  };
}
