import assert from 'node:assert/strict';

/** A text, a list of texts, or names with values. */
export type Yaml = string | readonly string[] | null | { readonly [key: string]: Yaml };

interface Line {
  readonly indent: number;
  readonly text: string;
  readonly number: number;
}

/**
 * Reads the little of YAML that our compose files are written in: maps by indentation, and lists of plain texts. Whatever
 * else there is fails.
 */
export function readPlainYaml(text: string): Yaml {
  const lines = text.split('\n').flatMap((line, index): Line[] => {
    assert.doesNotMatch(line, /\t| $/, `line ${index + 1}`);
    const content = line.trimStart();
    if (content === '' || content.startsWith('#')) return [];
    return [{ indent: line.length - content.length, text: content, number: index + 1 }];
  });
  const value = readBlock(lines, 0);
  assert.deepEqual(lines, [], 'what is indented by less than what is before it');
  return value;
}

function readBlock(lines: Line[], indent: number): Yaml {
  const items: string[] = [];
  const map: Record<string, Yaml> = {};
  while (lines[0] !== undefined && lines[0].indent === indent) {
    const { text, number } = lines.shift() as Line;
    if (text.startsWith('- ')) {
      items.push(readScalar(text.slice(2), number));
      continue;
    }
    const [, key = '', value = ''] = /^([A-Za-z0-9_.-]+):(?: (.*))?$/.exec(text) ?? [];
    assert.notEqual(key, '', `line ${number}: ${text}`);
    assert.equal(key in map, false, `line ${number}: ${key} stands twice`);
    const next = lines[0]?.indent ?? 0;
    if (value !== '') map[key] = readScalar(value, number);
    else map[key] = next > indent ? readBlock(lines, next) : null;
  }
  assert.ok(items.length === 0 || Object.keys(map).length === 0, 'a list and names in one place');
  return items.length > 0 ? items : map;
}

function readScalar(text: string, number: number): string {
  const [, quoted] = /^"([^"\\]*)"$/.exec(text) ?? [];
  if (quoted !== undefined) return quoted;
  assert.doesNotMatch(text, /^[[\]{}&*!|>'"%@`]|: | #/, `line ${number}: ${text}`);
  return text;
}
