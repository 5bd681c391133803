import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY_ROOT } from '../support/paths.js';
import type { PlantedBug } from './planted-bugs.js';

/**
 * Makes a copy of the built broker and of the simulator in which a bug is planted.
 * @returns the folder; `remove` deletes it.
 */
export function makeMutant({ name, changes }: PlantedBug): { main: string; remove: () => void } {
  const folder = join(REPOSITORY_ROOT, 'build', 'mutants', name.replaceAll(/[^a-z]+/g, '-').slice(0, 60));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const isCode = (path: string): boolean => !/\.(map|d\.ts|tsbuildinfo)$/.test(path);
  const copy = (from: string, to: string): void =>
    cpSync(join(REPOSITORY_ROOT, from), join(folder, to), { recursive: true, filter: isCode });
  copy('package.json', 'package.json');
  copy('dist', 'dist');
  for (const part of ['simulation', 'support']) copy(`build/test/${part}`, `build/test/${part}`);
  for (const { file, from, to } of changes) {
    const path = join(folder, 'dist', file);
    const text = readFileSync(path, 'utf8');
    assert.ok(text.includes(from), `${file} has no ${from} any more: plant the bug "${name}" anew`);
    writeFileSync(path, text.replace(from, to));
  }
  return {
    main: join(folder, 'build/test/simulation/main.js'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
