/**
 * Which address a request comes from, for limits: that of its connection, or what trusted proxies say of it.
 */

import { BlockList, isIP } from 'node:net';

/** Addresses of a header that are looked at; no chain of proxies is so long. */
const HOPS_MAX = 16;

export class ClientAddress {
  readonly #proxies = new BlockList();
  readonly #hasProxies: boolean;

  /** @param proxies addresses, or ranges such as `10.0.0.0/8`. */
  constructor(proxies: readonly string[]) {
    this.#hasProxies = proxies.length > 0;
    for (const proxy of proxies) {
      const [address = '', bits] = proxy.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#proxies.addAddress(address, family);
      else this.#proxies.addSubnet(address, Number(bits), family);
    }
  }

  /**
   * The nearest address that is no trusted proxy; what stands farther away in the header anybody can have written.
   * @param peer address of the connection, binary: 4 or 16 bytes.
   * @returns something that is equal for equal addresses, and for IPv6 addresses of one network of 64 bits.
   */
  of(peer: ArrayBuffer, forwardedFor: string): string {
    let nearest = textOf(new Uint8Array(peer));
    if (!this.#hasProxies || forwardedFor === '') return networkOf(nearest);
    const hops = forwardedFor.split(',').slice(-HOPS_MAX).reverse();
    for (const hop of hops) {
      if (!this.#isTrusted(nearest)) break;
      const address = plain(hop.trim());
      if (isIP(address) === 0) break;
      nearest = address;
    }
    return networkOf(nearest);
  }

  #isTrusted(address: string): boolean {
    const family = isIP(address);
    return family !== 0 && this.#proxies.check(address, family === 6 ? 'ipv6' : 'ipv4');
  }
}

function textOf(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  const words = Array.from({ length: bytes.length / 2 }, (_, at) =>
    (((bytes[2 * at] as number) << 8) | (bytes[2 * at + 1] as number)).toString(16),
  );
  return plain(words.join(':'));
}

/** An IPv4 address in the clothes of IPv6 is the IPv4 address. */
function plain(address: string): string {
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (dotted !== undefined) return dotted;
  const mapped = /^(?:0:){5}ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address);
  if (mapped === null) return address;
  const [high, low] = [Number.parseInt(mapped[1] as string, 16), Number.parseInt(mapped[2] as string, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** A household, or a machine, has a whole network of 64 bits: its addresses are not different clients. */
function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [left = '', right] = address.split('::');
  const head = left === '' ? [] : left.split(':');
  const tail = right === undefined || right === '' ? [] : right.split(':');
  const zeros = right === undefined ? 0 : Math.max(0, 8 - head.length - tail.length);
  const words = [...head, ...Array<string>(zeros).fill('0'), ...tail];
  return words
    .slice(0, 4)
    .map((word) => Number.parseInt(word, 16).toString(16))
    .join(':');
}
