import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ERRORS } from '#gapless/errors.js';

const PROTOCOL = readFileSync(new URL('../../../src/PROTOCOL.md', import.meta.url), 'utf8');
const TABLE = /<!-- errors -->\n+([\s\S]*?)\n+<!-- \/errors -->/;

/** Words in backticks that look like codes and stand beside a status, such as 410 `epoch_changed`. */
const STATUS_AND_CODE = /\b([45]\d\d) `([a-z0-9_]+)`/g;
/** The reasons of 4.4 are not codes, and the text names codes that a later version has. */
const OTHER_WORDS: ReadonlySet<string> = new Set(['epoch_changed', 'rate_limited']);

test('8 the table of errors is the one that the server answers from', () => {
  const expected = Object.entries(ERRORS).map(([code, { status, retry, doc }]) =>
    row([`\`${code}\``, String(status), retry ? 'yes' : 'no', doc]),
  );
  const [, , ...rows] = (TABLE.exec(PROTOCOL)?.[1] ?? '').split('\n');
  const given = rows.map((line) => row(line.split('|').slice(1, -1)));
  assert.deepEqual(given, expected, `expected in src/PROTOCOL.md:\n${expected.join('\n')}`);
});

test('8 a code that the text names beside a status has that status', () => {
  const named = [...PROTOCOL.matchAll(STATUS_AND_CODE)].filter(([, , code = '']) => !OTHER_WORDS.has(code));
  assert.ok(named.length > 20, 'the text names codes');
  const statusOf: Readonly<Record<string, number>> = Object.fromEntries(
    Object.entries(ERRORS).map(([code, { status }]) => [code, status]),
  );
  const wrong = named.filter(([, status, code = '']) => statusOf[code] !== Number(status));
  assert.deepEqual(
    wrong.map(([text]) => text),
    [],
  );
});

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.trim()).join(' | ')} |`;
}
