import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const ROOT = new URL('../../../', import.meta.url);
const exists = (path: string): boolean => existsSync(new URL(path, ROOT));

test('every source file that the architecture names exists', () => {
  const text = readFileSync(new URL('src/README.md', ROOT), 'utf8');
  const named = [...text.matchAll(/`([\w./-]+\.ts)`/g)].map(([, path = '']) => path);
  assert.ok(named.length > 30, 'it names files');
  const missing = named.filter((path) => !exists(`src/${path}`) && !exists(`test/${path}`));
  assert.deepEqual([...new Set(missing)], []);
});

test('every link from one document to another leads somewhere', () => {
  for (const document of ['README.md', 'src/README.md', 'src/PROTOCOL.md', 'grafana/README.md']) {
    const text = readFileSync(new URL(document, ROOT), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
      const path = new URL(target, new URL(document, ROOT));
      assert.ok(existsSync(path), `${document}: ${target}`);
    }
  }
});
