import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { REPOSITORY_ROOT } from '../support/paths.js';

const COMPILER = join(REPOSITORY_ROOT, 'node_modules/typescript/bin/tsc');

/** What the hook uses of React 18 and 19, as `@types/react` declares it, so that React is no dependency. */
const REACT = `declare module 'react' {
  export type SetStateAction<S> = S | ((before: S) => S);
  export type Dispatch<A> = (action: A) => void;
  export function useState<S>(initial: S | (() => S)): [S, Dispatch<SetStateAction<S>>];
  export function useEffect(effect: () => void | (() => void), dependencies?: readonly unknown[]): void;
}
`;

/** What is done with it, which fixes the types of what it returns. */
const USE = `import type { GaplessClient, StreamEvent } from 'gapless/client';
import { useStream } from "./hook.js";

declare const client: GaplessClient;
export const told: { events: StreamEvent<string>[]; error: unknown } = useStream(client, 'orders');
// @ts-expect-error: the name of a stream is text
useStream(client, 1);
`;

const OPTIONS = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2024', 'dom', 'dom.asynciterable'],
    types: [],
    module: 'nodenext',
    jsx: 'preserve',
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  },
  include: ['*'],
};

it('the React hook of the README has the types of the client and of React', () => {
  const readme = readFileSync(join(REPOSITORY_ROOT, 'README.md'), 'utf8');
  const hooks = [...readme.matchAll(/```tsx\n([\s\S]*?)```/g)];
  assert.equal(hooks.length, 1);
  mkdirSync(join(REPOSITORY_ROOT, 'build'), { recursive: true });
  // Within the package, so that its own name is found.
  const folder = mkdtempSync(join(REPOSITORY_ROOT, 'build', 'react-'));
  try {
    writeFileSync(join(folder, 'hook.tsx'), hooks[0]?.[1] ?? '');
    writeFileSync(join(folder, 'use.ts'), USE);
    writeFileSync(join(folder, 'react.d.ts'), REACT);
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(OPTIONS));
    const { status, stdout } = spawnSync(process.execPath, [COMPILER, '-p', folder], { encoding: 'utf8' });
    assert.equal(status, 0, stdout);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
