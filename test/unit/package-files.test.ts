import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { REPOSITORY_ROOT } from '../support/paths.js';

const read = (path: string): string => readFileSync(join(REPOSITORY_ROOT, path), 'utf8');
const sourceOf = (path: string): string => path.replace(/^dist/, 'src').replace(/\.js$/, '.ts');

describe('the package', () => {
  const argv = ['pack', '--dry-run', '--json', '--ignore-scripts', '--no-update-notifier'];
  const told = execFileSync('npm', argv, { cwd: REPOSITORY_ROOT, encoding: 'utf8', stdio: 'pipe' });
  const [{ files }] = JSON.parse(told) as [{ files: { path: string }[] }];
  const paths = files.map(({ path }) => path);

  it('has what it exports, with types, and its program', () => {
    const { bin, exports } = JSON.parse(read('package.json')) as {
      bin: Record<string, string>;
      exports: Record<string, string>;
    };
    const modules = [...Object.values(exports), ...Object.values(bin)].map((path) => path.replace('./', ''));
    assert.ok(modules.length > 3);
    const wanted = modules.flatMap((path) => [path, path.replace(/\.js$/, '.d.ts')]);
    assert.deepEqual(
      wanted.filter((path) => !paths.includes(path)),
      [],
    );
  });

  it('has all that its README links', () => {
    const links = [...read('README.md').matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, path = '']) => path);
    assert.ok(links.length > 5);
    assert.deepEqual(
      links.filter((path) => !paths.includes(path)),
      [],
    );
  });

  it('has the dashboards, the alert rules and the contract', () => {
    for (const path of ['grafana/dashboards/gapless.json', 'grafana/alerts.yml', 'src/PROTOCOL.md'])
      assert.ok(paths.includes(path), path);
  });

  it('leads to no source map, for the sources are not in it', () => {
    const isBuilt = (path: string) => existsSync(join(REPOSITORY_ROOT, sourceOf(path)));
    // An older build may have left others.
    const modules = paths.filter((path) => path.endsWith('.js') && isBuilt(path));
    assert.ok(modules.length > 100);
    assert.deepEqual(
      modules.filter((path) => /^\/\/# sourceMappingURL=/m.test(read(path))),
      [],
    );
  });
});
