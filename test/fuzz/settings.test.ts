import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { loadConfig } from '#gapless/config/load.js';
import { formatProblem } from '#gapless/config/problem.js';
import { SETTINGS } from '#gapless/config/schema.js';
import { fuzz } from './fuzz.js';
import { mutate, mutateText, mutations } from './mutation.js';

const VALUES = [
  '8080',
  '64KiB',
  '1.5MiB',
  '5s',
  '100ms',
  'true',
  'always',
  'a,b*',
  '127.0.0.1',
  '',
  '0',
  '*',
];
const FILE = Buffer.from(
  '{"port": 9000, "drainMs": "5s", "memory": "64MiB", "corsOrigins": ["https://a.example"], "fsync": "interval"}',
);

const setting = fc.constantFrom(...SETTINGS.map(({ flag, env }) => ({ flag, variable: env })));
const value = fc
  .tuple(fc.constantFrom(...VALUES), mutations(2))
  .map(([text, changes]) => mutateText(text, changes));
const flags = fc.array(fc.tuple(setting, value, mutations(1), fc.boolean()), { maxLength: 4 }).map((drawn) =>
  drawn.flatMap(([{ flag }, text, changes, isJoined]) => {
    const name = mutateText(flag, changes);
    return isJoined ? [`${name}=${text}`] : [name, text];
  }),
);
const variables = fc
  .array(fc.tuple(setting, value, mutations(1)), { maxLength: 3 })
  .map((drawn) =>
    Object.fromEntries(drawn.map(([{ variable }, text, changes]) => [mutateText(variable, changes), text])),
  );

describe('settings, changed anywhere', () => {
  it('11 are loaded, the same again when they are written to a file, or refused with lines for people', (context) =>
    fuzz(context, fc.tuple(flags, variables, fc.option(mutations(3))), ([argv, env, changes]) => {
      const file = changes === null ? '{}' : mutate(FILE, changes).toString();
      const given = changes === null ? argv : ['--config', 'gapless.json', ...argv];
      const loaded = loadConfig(given, env, (path) => {
        if (path !== 'gapless.json') throw new Error(`ENOENT: ${path}`);
        return file;
      });
      if (loaded.outcome === 'refused') {
        assert.ok(loaded.problems.length > 0);
        for (const problem of loaded.problems) assert.ok(!/[\p{Cc}]/u.test(formatProblem(problem)));
        return;
      }
      assert.deepEqual(Object.keys(loaded.config).sort(), SETTINGS.map(({ key }) => key).sort());
      const written = Object.entries(loaded.config).filter(
        ([key, entry]) => key !== 'config' && entry !== null,
      );
      const again = loadConfig(['--config', 'x'], {}, () => JSON.stringify(Object.fromEntries(written)));
      assert.equal(again.outcome, 'loaded', JSON.stringify(again));
      if (again.outcome === 'loaded')
        assert.deepEqual({ ...again.config, config: null }, { ...loaded.config, config: null });
    }));
});
