import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SETTINGS } from '#gapless/config/schema.js';
import { settingsTable } from '#gapless/config/settings-table.js';
import { settingsUsage } from '#gapless/config/settings-usage.js';

test('flags and variables follow from the keys', () => {
  const setting = SETTINGS.find(({ key }) => key === 'longPollMsMax');
  assert.equal(setting?.flag, '--long-poll-ms-max');
  assert.equal(setting?.env, 'GAPLESS_LONG_POLL_MS_MAX');
});

for (const { key, kind, default: fallback, doc } of SETTINGS) {
  if (fallback !== null) {
    test(`the default of ${key} is valid, and its shown form reads back as the same value`, () => {
      assert.deepEqual(kind.schema.parse(fallback), fallback);
      assert.deepEqual(kind.schema.parse(kind.show(fallback)), fallback);
    });
  }

  test(`${key} has a unit in its name if it is a time, and is explained in sentences`, () => {
    assert.equal(kind.unit === 'ms', /Ms(Max)?$/.test(key));
    assert.match(doc, /^[A-Z].*\.$/);
  });
}

test('a value of the wrong type is refused by every setting', () => {
  for (const { key, kind } of SETTINGS) {
    for (const value of [{}, [1], Number.NaN, undefined, Symbol.iterator]) {
      assert.equal(kind.schema.safeParse(value).success, false, `${key} refuses ${String(value)}`);
    }
  }
});

test('usage names every flag with its default and keeps to 100 columns', () => {
  const usage = settingsUsage();
  for (const line of usage.split('\n')) assert.ok(line.length <= 100, line);
  for (const { flag, kind } of SETTINGS) {
    const shown = kind.placeholder === null ? flag.replace('--', '--[no-]') : `${flag} ${kind.placeholder}`;
    // A long one has its line to itself.
    assert.ok(usage.includes(`  ${shown} `) || usage.includes(`  ${shown}\n`), flag);
  }
  assert.match(usage, /--memory SIZE .*\n?.*1MiB to\s+64GiB; default 256MiB/);
});

test('the Markdown table has one well-formed row for every setting', () => {
  const rows = settingsTable()
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  assert.equal(rows.length, SETTINGS.length);
  for (const row of rows) assert.equal(row.replaceAll('\\|', '').split('|').length, 6, row);
});
