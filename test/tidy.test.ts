import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { ERRORS } from '#gapless/errors.js';
import { REPOSITORY_ROOT } from './support/paths.js';

const LINES_MAX = 350;

/** Higher may import lower, never the other way, and never a neighbour of its own height. */
const HEIGHT: Record<string, number> = {
  main: 8,
  cli: 7,
  server: 6,
  transport: 5,
  metrics: 5,
  mcp: 4,
  broker: 3,
  'mcp-sdk': 3,
  console: 3,
  auth: 2,
  storage: 2,
  wire: 2,
  client: 2,
  ring: 2,
  core: 1,
  assert: 0,
  errors: 0,
};

/** Leaves beside the layers: those named may use them; they themselves use `assert` and `errors`, or each other. */
const LEAVES: Record<string, readonly string[]> = {
  config: ['main', 'cli', 'server', 'broker', 'transport', 'metrics', 'log'],
  log: ['main', 'cli', 'server', 'broker', 'transport', 'metrics'],
  conformance: ['cli'],
};

/** The core is pure: what it needs of the world is handed to it. */
const BANNED_IN_CORE: Record<string, string> = {
  'Date.now(': 'take nowMs as an argument',
  'new Date(': 'take nowMs as an argument',
  'performance.': 'take nowMs as an argument',
  'Math.random(': 'take random bytes as an argument',
  'crypto.': 'take random bytes as an argument',
  'setTimeout(': 'return what is due and when',
  'setInterval(': 'return what is due and when',
  'process.': 'take the setting as an argument',
  "'node:": 'the core touches nothing of Node',
  SharedArrayBuffer: 'shared memory belongs to the ring',
  'Atomics.': 'shared memory belongs to the ring',
};

/** Split, so that this file passes its own test. */
const BANNED_EVERYWHERE = ['FIX' + 'ME', 'TO' + 'DO', 'XX' + 'X'];

interface SourceFile {
  /** Relative to the repository root, with slashes. */
  path: string;
  text: string;
  /** What it imports from files of the repository, as paths like `path`. */
  imports: string[];
  /** Those of them that are still there when it runs: types that name each other make no cycle. */
  runtimeImports: string[];
}

function sourceFiles(folder: string): SourceFile[] {
  const root = join(REPOSITORY_ROOT, folder);
  if (!existsSync(root)) return [];
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => {
      const file = join(root, name);
      const text = readFileSync(file, 'utf8');
      const withoutTypes = text.replace(/^(?:import|export) type [^;]*;$/gm, '');
      const imports = importsOf(file, text);
      const runtimeImports = importsOf(file, withoutTypes);
      return { path: relative(REPOSITORY_ROOT, file), text, imports, runtimeImports };
    });
}

function importsOf(file: string, text: string): string[] {
  const specifiers = text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.{1,2}\/[^']+)'/g);
  return [...specifiers].map(([, specifier = '']) => {
    const target = resolve(dirname(file), specifier.replace(/\.js$/, '.ts'));
    assert.ok(
      existsSync(target),
      `${relative(REPOSITORY_ROOT, file)} imports ${specifier}, which is not there`,
    );
    return relative(REPOSITORY_ROOT, target);
  });
}

/** The layer or leaf of a file of `src`: its folder, or its own name where it lies beside the folders. */
function unitOf(path: string): string {
  const [, first = ''] = path.split('/');
  return first.replace(/\.ts$/, '');
}

function isAllowed(from: string, to: string): boolean {
  if (from === to) return true;
  const users = LEAVES[to];
  if (users !== undefined) return users.includes(from);
  const height = from in LEAVES ? 1 : HEIGHT[from];
  const target = HEIGHT[to];
  return height !== undefined && target !== undefined && target < height;
}

/** The first cycle found, as the files along it, or null. */
function findCycle(files: readonly SourceFile[]): string[] | null {
  const importsByPath = new Map(files.map(({ path, runtimeImports }) => [path, runtimeImports]));
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): string[] | null => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return null;
    for (const next of importsByPath.get(path) ?? []) {
      const cycle = visit(next, [...trail, path]);
      if (cycle !== null) return cycle;
    }
    done.add(path);
    return null;
  };
  for (const { path } of files) {
    const cycle = visit(path, []);
    if (cycle !== null) return cycle;
  }
  return null;
}

describe('the source is tidy', () => {
  const source = sourceFiles('src');
  const everything = [...source, ...sourceFiles('test'), ...sourceFiles('native-bench')];

  it('finds the source at all', () => {
    assert.ok(source.length > 20);
    assert.ok(source.some(({ imports }) => imports.length > 0));
  });

  it('every file of src belongs to a layer or is a known leaf', () => {
    for (const { path } of source) {
      const unit = unitOf(path);
      assert.ok(unit in HEIGHT || unit in LEAVES, `${path}: which layer is ${unit}?`);
    }
  });

  it('imports go downwards only', () => {
    const wrong = source.flatMap(({ path, imports }) =>
      imports
        .filter((target) => !isAllowed(unitOf(path), unitOf(target)))
        .map((target) => `${path} -> ${target}`),
    );
    assert.deepEqual(wrong, []);
  });

  it('there is no import cycle', () => {
    assert.deepEqual(findCycle(everything), null);
  });

  it('the core is pure', () => {
    const wrong = source
      .filter(({ path }) => unitOf(path) === 'core')
      .flatMap(({ path, text }) =>
        Object.entries(BANNED_IN_CORE)
          .filter(([banned]) => withoutComments(text).includes(banned))
          .map(([banned, instead]) => `${path} has ${banned}: ${instead}`),
      );
    assert.deepEqual(wrong, []);
  });

  it('no file is a patchwork: none has leftover notes, and none is too long', () => {
    const wrong = everything.flatMap(({ path, text }) => {
      const lines = text.split('\n').length - 1;
      const notes = BANNED_EVERYWHERE.filter((note) => text.includes(note)).map(
        (note) => `${path} has ${note}`,
      );
      return lines > LINES_MAX ? [...notes, `${path} has ${lines} lines`] : notes;
    });
    assert.deepEqual(wrong, []);
  });

  it('tests import what was built, never the source beside it', () => {
    const wrong = sourceFiles('test').filter(({ imports }) =>
      imports.some((target) => target.startsWith('src/')),
    );
    assert.deepEqual(
      wrong.map(({ path }) => path),
      [],
    );
  });
});

describe('the table of errors', () => {
  /** What takes a medium that fails in other ways than by being full. */
  const UNPROVOKED = ['log_unavailable'];

  it('has no code that the contract tests do not provoke', () => {
    const contractTests = ['test/contract', 'test/durable']
      .flatMap((folder) => sourceFiles(folder))
      .map(({ text }) => text);
    const isProvoked = (code: string) => contractTests.some((text) => text.includes(`'${code}'`));
    const codes = Object.keys(ERRORS).filter((code) => !UNPROVOKED.includes(code));
    assert.deepEqual(
      codes.filter((code) => !isProvoked(code)),
      [],
    );
  });
});

describe('the rules of tidiness', () => {
  it('let a layer import what lies lower, and nothing else', () => {
    const allowed = [
      ['main', 'cli'],
      ['transport', 'broker'],
      ['transport', 'core'],
      ['ring', 'errors'],
      ['log', 'errors'],
      ['cli', 'conformance'],
    ];
    const forbidden = [
      ['core', 'ring'],
      ['transport', 'metrics'],
      ['wire', 'ring'],
      ['core', 'config'],
      ['log', 'core'],
      ['broker', 'transport'],
      ['conformance', 'core'],
      ['server', 'conformance'],
    ];
    for (const [from = '', to = ''] of allowed) assert.ok(isAllowed(from, to), `${from} -> ${to}`);
    for (const [from = '', to = ''] of forbidden) assert.ok(!isAllowed(from, to), `${from} -> ${to}`);
  });

  it('find a cycle and name the files along it', () => {
    const file = (path: string, ...imports: string[]): SourceFile => {
      return { path, text: '', imports, runtimeImports: imports };
    };
    const files = [file('a', 'b', 'd'), file('b', 'c'), file('c', 'b'), file('d')];
    assert.deepEqual(findCycle(files), ['b', 'c', 'b']);
    assert.equal(findCycle([file('a', 'b', 'c'), file('b', 'c'), file('c')]), null);
  });
});

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
}
