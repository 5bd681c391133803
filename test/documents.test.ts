import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { REPOSITORY_ROOT } from './support/paths.js';

const DOCUMENTS = [
  'README.md',
  'CHANGELOG.md',
  'src/README.md',
  'src/PROTOCOL.md',
  'test/README.md',
  'grafana/README.md',
  'native-bench/README.md',
];

const textOf = (path: string): string => readFileSync(join(REPOSITORY_ROOT, path), 'utf8');

/** What follows `#` in links to the headings of a document, as GitHub makes it of them. */
function anchorsOf(path: string): Set<string> {
  const prose = textOf(path).replace(/^```.*?^```/gms, '');
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Why a link of a document leads nowhere; null: it leads somewhere, or out of the repository. */
function faultOf(link: string, document: string): string | null {
  if (/^[a-z]+:/.test(link)) return null;
  const [path = '', anchor = ''] = link.split('#');
  const target = path === '' ? document : join(dirname(document), path);
  if (!existsSync(join(REPOSITORY_ROOT, target))) return `${document}: ${link} is not there`;
  if (anchor === '' || anchorsOf(target).has(anchor)) return null;
  return `${document}: ${target} has no heading ${anchor}`;
}

describe('the documents are true', () => {
  for (const document of DOCUMENTS) {
    it(`every link of ${document} leads somewhere`, () => {
      const links = [...textOf(document).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
      assert.deepEqual(
        links.map((link) => faultOf(link, document)).filter((fault) => fault !== null),
        [],
      );
    });
  }

  for (const folder of ['src', 'test']) {
    it(`the table of ${folder}/README.md has every folder beside it`, () => {
      const rows =
        textOf(`${folder}/README.md`)
          .match(/^\| .+$/gm)
          ?.join('\n') ?? '';
      const folders = readdirSync(join(REPOSITORY_ROOT, folder), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name);
      const missing = folders.filter((name) => !new RegExp(`\`${name}/?\``).test(rows));
      assert.deepEqual(missing, []);
    });
  }

  it('every source file that the architecture names is there', () => {
    const named = [...textOf('src/README.md').matchAll(/`([\w./-]+\.ts)`/g)].map(([, path = '']) => path);
    assert.ok(named.length > 30);
    const isThere = (path: string): boolean => existsSync(join(REPOSITORY_ROOT, path));
    assert.deepEqual(
      named.filter((path) => !isThere(join('src', path)) && !isThere(join('test', path))),
      [],
    );
  });
});
