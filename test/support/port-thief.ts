/**
 * Loaded into a broker before its program (`node --import`): the first ports that its main thread has tried twice are
 * another program's as soon as it leaves them.
 */

import { type AddressInfo, createServer, Server } from 'node:net';

const THEFTS_MAX = 3;

const tried = new Set<number>();
let thefts = 0;

const { close } = Server.prototype;
Server.prototype.close = function (this: Server, closed): Server {
  const address = this.address() as AddressInfo | string | null;
  Reflect.apply(close, this, [closed]);
  if (address === null || typeof address === 'string') return this;
  if (tried.has(address.port) && thefts++ < THEFTS_MAX) {
    createServer().listen({ host: address.address, port: address.port, exclusive: true }).unref();
  }
  tried.add(address.port);
  return this;
};
