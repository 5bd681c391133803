import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { assertProblem } from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { apiKey, Files } from '../support/tokens.js';

const files = new Files();
const operator = apiKey('operator', { admin: true });
const keysFile = files.write('api-keys.json', JSON.stringify({ apiKeys: [operator.entry] }));

/** What a page of the console may do, whoever gets a word into it. */
const POLICY = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
  'require-trusted-types-for': "'script'",
  'trusted-types': "'none'",
};

function policyOf(response: HttpResponse): Record<string, string> {
  const directives = response.header('content-security-policy')?.split(';') ?? [];
  return Object.fromEntries(
    directives.map((directive) => {
      const [name = '', ...values] = directive.trim().split(' ');
      return [name, values.join(' ')];
    }),
  );
}

async function get(port: number, path: string): Promise<HttpResponse> {
  const response = await request(port, { path });
  assert.equal(response.status, 200, `${path}: ${response.text}`);
  return response;
}

describe('10 the console', () => {
  const broker = useBroker('--api-keys-file', keysFile);

  /** All that the document leads to, by path. */
  async function assets(): Promise<Map<string, HttpResponse>> {
    const { text } = await get(broker.port, '/console');
    const links = [...text.matchAll(/(?:href|src)="([^"#][^"]*)"/g)].map(([, link = '']) => `/${link}`);
    const found = new Map<string, HttpResponse>();
    for (let path = links.pop(); path !== undefined; path = links.pop()) {
      if (found.has(path)) continue;
      const response = await get(broker.port, path);
      found.set(path, response);
      if (!path.endsWith('.js')) continue;
      for (const [, specifier = ''] of response.text.matchAll(/(?:from|import) '([^']+)'/g)) {
        assert.ok(specifier.startsWith('.'), `${path} imports ${specifier}`);
        links.push(posix.join(posix.dirname(path), specifier));
      }
    }
    return found;
  }

  it('10 is a document without a word of script or style in it, and needs no credential', async () => {
    const response = await get(broker.port, '/console');
    assert.equal(response.header('content-type'), 'text/html; charset=utf-8');
    assert.ok(response.text.includes('data-token="needed"'));
    assert.ok(!/<style|style=|\son[a-z]+=|javascript:/i.test(response.text));
    for (const [script] of response.text.matchAll(/<script[^]*?<\/script>/g)) {
      assert.match(script, /^<script type="module" src="console\/[^"]+"><\/script>$/);
    }
    assert.ok(!/https?:/.test(response.text), 'nothing comes from elsewhere');
  });

  it('10 all that it consists of is there, under the same policy, and as what it is', async () => {
    const found = await assets();
    assert.ok([...found.keys()].some((path) => path.endsWith('/client/client.js')));
    const types: Record<string, string> = {
      '.js': 'text/javascript; charset=utf-8',
      '.css': 'text/css; charset=utf-8',
      '.svg': 'image/svg+xml',
    };
    for (const [path, response] of [...found, ['/console', await get(broker.port, '/console')] as const]) {
      assert.deepEqual(policyOf(response), POLICY, path);
      assert.equal(response.header('x-content-type-options'), 'nosniff');
      assert.equal(response.header('referrer-policy'), 'no-referrer');
      const type = types[posix.extname(path)];
      if (type !== undefined) assert.equal(response.header('content-type'), type, path);
      assert.ok(!response.text.includes('sourceMappingURL'), path);
      assert.ok(!/\binnerHTML\b|\beval\(|insertAdjacentHTML|document\.write/.test(response.text), path);
    }
  });

  it('10 what a browser has is asked for again each time, and not sent again', async () => {
    for (const path of ['/console', '/console/style.css', '/console/modules/console/page/main.js']) {
      const first = await get(broker.port, path);
      assert.equal(first.header('cache-control'), 'no-cache');
      const etag = first.header('etag') as string;
      assert.match(etag, /^"[\w-]{43}"$/);
      for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await request(broker.port, { path, headers: { 'If-None-Match': known } });
        assert.deepEqual([again.status, again.text, again.header('etag')], [304, '', etag], known);
        assert.deepEqual(policyOf(again), POLICY);
      }
      const other = await request(broker.port, { path, headers: { 'If-None-Match': '"other"' } });
      assert.equal(other.status, 200);
      const head = await request(broker.port, { method: 'HEAD', path });
      assert.deepEqual([head.status, head.text], [200, '']);
      assert.equal(head.header('content-length'), String(Buffer.byteLength(first.text)));
    }
  });

  it('10 nothing else is there, and nothing of the folder that it was built in', async () => {
    const paths = [
      '/console/modules/main.js',
      '/console/modules/console/assets.js',
      '/console/modules/../package.json',
      '/console/modules/%2e%2e/package.json',
      '/console/modules/console/page/main.js.map',
      '/console/style.css/',
      '/consoles',
    ];
    for (const path of paths) assertProblem(await request(broker.port, { path }), 404, 'not_found');
    const slash = await request(broker.port, { path: '/console/' });
    assert.deepEqual([slash.status, slash.header('location')], [308, '../console']);
    assert.equal(slash.header('content-length'), '0', 'who reads it to its end waits for nothing more');
    const posted = await request(broker.port, { method: 'POST', path: '/console' });
    assertProblem(posted, 405, 'method_not_allowed');
    assert.equal(posted.header('allow'), 'GET, HEAD, OPTIONS');
  });
});

describe('10 a console that nobody has to sign in to', () => {
  const broker = useBroker();

  it('10 says so, where the server has no keys', async () => {
    assert.ok((await get(broker.port, '/console')).text.includes('data-token="none"'));
  });
});

describe('10 without the console', () => {
  const broker = useBroker('--no-console');

  it('10 --no-console serves nothing of it', async () => {
    for (const path of ['/console', '/console/', '/console/style.css']) {
      assertProblem(await request(broker.port, { path }), 404, 'not_found');
      assertProblem(await request(broker.port, { method: 'POST', path }), 404, 'not_found');
    }
  });
});
