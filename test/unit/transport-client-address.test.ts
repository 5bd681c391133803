import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextPressure } from '#gapless/core/pressure.js';
import { ClientAddress } from '#gapless/transport/admission/client-address.js';

const PROXY = Uint8Array.of(10, 0, 0, 1).buffer;
const STRANGER = Uint8Array.of(192, 0, 2, 1).buffer;

test('9.3 without trusted proxies what a header says is not believed', () => {
  assert.equal(new ClientAddress([]).of(STRANGER, '203.0.113.1'), '192.0.2.1');
  assert.equal(new ClientAddress(['10.0.0.0/8']).of(STRANGER, '203.0.113.1'), '192.0.2.1');
});

test('9.3 of what proxies say the nearest stranger counts, so that nobody chooses an address', () => {
  const addresses = new ClientAddress(['10.0.0.0/8', 'fd00::/8']);
  assert.equal(addresses.of(PROXY, '203.0.113.1'), '203.0.113.1');
  assert.equal(addresses.of(PROXY, '198.51.100.1, 203.0.113.1'), '203.0.113.1');
  assert.equal(addresses.of(PROXY, '198.51.100.1, 203.0.113.1, 10.9.9.9,fd00::1'), '203.0.113.1');
  assert.equal(addresses.of(PROXY, ''), '10.0.0.1');
  assert.equal(addresses.of(PROXY, '203.0.113.1, garbage'), '10.0.0.1');
  assert.equal(addresses.of(PROXY, Array(100).fill('10.0.0.2').join(',')), '10.0.0.2');
});

test('9.3 IPv4 in the clothes of IPv6 is IPv4, and IPv6 counts by its network', () => {
  const mapped = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1).buffer;
  const addresses = new ClientAddress(['10.0.0.0/8']);
  assert.equal(addresses.of(mapped, ''), '192.0.2.1');
  assert.equal(addresses.of(PROXY, '::ffff:192.0.2.1'), '192.0.2.1');
  const network = addresses.of(PROXY, '2001:db8:0:1::1');
  assert.equal(addresses.of(PROXY, '2001:DB8::1:a:b:c:d'), network);
  assert.notEqual(addresses.of(PROXY, '2001:db8:0:2::1'), network);
});

test('9.3 pressure rises at once and falls slowly', () => {
  let pressureMs = nextPressure(0, 1000);
  assert.equal(pressureMs, 1000);
  for (let look = 0; look < 7; look++) pressureMs = nextPressure(pressureMs, 0);
  assert.ok(pressureMs > 400 && pressureMs < 500);
  assert.equal(nextPressure(pressureMs, 2000), 2000);
});
