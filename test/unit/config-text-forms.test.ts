import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isCorsOrigin,
  isHost,
  isLoopback,
  isMcpMount,
  isNatsUrl,
  isStreamPattern,
  splitMcpMounts,
} from '#gapless/config/text-forms.js';

function accepts(isValid: (text: string) => boolean, texts: readonly string[]): void {
  for (const text of texts) assert.equal(isValid(text), true, `${JSON.stringify(text)} is accepted`);
}

function refuses(isValid: (text: string) => boolean, texts: readonly string[]): void {
  for (const text of texts) assert.equal(isValid(text), false, `${JSON.stringify(text)} is refused`);
}

test('a host is an address or a name', () => {
  accepts(isHost, ['127.0.0.1', '0.0.0.0', '::', '::1', 'localhost', 'broker-1.example.org']);
  refuses(isHost, ['', ' ', '[::1]', 'http://a', 'a:80', '-a', 'a..b', 'a b', 'a\n', `${'a'.repeat(254)}`]);
});

test('9.2 only what nobody else can reach counts as loopback', () => {
  accepts(isLoopback, [
    '127.0.0.1',
    '127.255.255.254',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    'localhost',
    'LOCALHOST',
  ]);
  refuses(isLoopback, [
    '0.0.0.0',
    '::',
    '126.255.255.255',
    '128.0.0.1',
    '10.0.0.1',
    'fe80::1',
    'localhost.example',
    '127.0.0.1.example',
  ]);
});

test('9.3 an allowed origin is written as browsers send it', () => {
  accepts(isCorsOrigin, [
    '*',
    'https://app.example',
    'http://localhost:3000',
    'http://[::1]:8080',
    'capacitor://localhost',
  ]);
  refuses(isCorsOrigin, [
    '',
    'null',
    'app.example',
    'https://',
    'https://app.example/',
    'https://app.example:443',
    'https://App.example',
    'https://user@app.example',
    'https://*.example',
    'capacitor://localhost/',
  ]);
});

test('a stream pattern is a name, or its beginning and a star', () => {
  accepts(isStreamPattern, [
    'a',
    'orders.eu~1:x-y_z',
    '*',
    'orders.*',
    'a'.repeat(200),
    `${'a'.repeat(200)}*`,
  ]);
  refuses(isStreamPattern, ['', 'a*b', '**', 'a b', 'é', 'a/b', 'a'.repeat(201)]);
});

test('12 a mount is a path that is free, and a server', () => {
  accepts(isMcpMount, [
    '/mcp=http://127.0.0.1:3000/mcp',
    '/a/b.c=https://mcp.example/x?y=1,2',
    '/mcp=https://user:pass%20word@mcp.example/',
    '/mcp=https://:token@mcp.example/',
    '/files=stdio:npx -y server DIR',
  ]);
  refuses(isMcpMount, [
    '',
    '/mcp',
    'mcp=http://a/',
    '/mcp=',
    '/mcp=ftp://a/',
    '/mcp=http://user:100%@a/',
    '/mcp=stdio:',
    '/mcp=stdio: ',
    '/=http://a/',
    '/a//b=http://a/',
    '/a b=http://a/',
    '/v1=http://a/',
    '/v1/x=http://a/',
    '/metrics=http://a/',
    '/console=http://a/',
    '/healthz=http://a/',
  ]);
});

test('12 mounts stand between commas, and a command may have commas of its own', () => {
  const mounts = ['/a=stdio:run --list x,y,/z', '/b=http://127.0.0.1/mcp', '/c/d=stdio:run'];
  assert.deepEqual(splitMcpMounts(mounts.join(',')), mounts);
  assert.deepEqual(splitMcpMounts(mounts.join(', ')), mounts);
});

test('11 a server of a shared log is a URL of NATS, with nothing behind the host', () => {
  accepts(isNatsUrl, [
    'nats://127.0.0.1:4222',
    'tls://nats.example/',
    'nats://user:pass%20word@[::1]:4222',
    'nats://token@nats.example',
  ]);
  refuses(isNatsUrl, ['', 'nats:', 'http://a/', 'nats://a/b', 'nats://a?b', 'nats://a#b', 'nats://100%@a']);
});
