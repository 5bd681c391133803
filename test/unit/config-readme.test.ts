import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { settingsTable } from '#gapless/config/settings-table.js';

const README = new URL('../../../README.md', import.meta.url);
const SECTION = /<!-- settings -->\n+([\s\S]*?)\n+<!-- \/settings -->/;

test('the README lists the settings as they are', (context) => {
  const section = existsSync(README) ? SECTION.exec(readFileSync(README, 'utf8')) : null;
  if (section === null) return context.skip('the README has no section between settings markers');
  assert.equal(section[1], settingsTable(), 'paste the output of: gapless config --markdown');
});
