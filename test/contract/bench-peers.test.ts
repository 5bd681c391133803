import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { REPOSITORY_ROOT } from '../support/paths.js';

const BENCH = resolve(REPOSITORY_ROOT, 'build/native-bench/main.js');

/**
 * Stands for nginx, with one process below it, or for a broker: takes POST and delivers SSE, but for the first event
 * of each path.
 */
const LOSES_EVENTS = `#!${process.execPath}
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const [what, ...args] = process.argv.slice(2);
if (what === '-p') {
  const port = /listen 127\\.0\\.0\\.1:(\\d+)/.exec(readFileSync(args[2], 'utf8'))[1];
  const worker = fork(fileURLToPath(import.meta.url), ['worker', port]);
  process.once('SIGTERM', () => worker.kill());
  worker.once('exit', () => process.exit());
} else {
  const topics = new Map();
  const topicOf = (url) => {
    const name = url.split('?')[0].split('/').at(-1);
    if (!topics.has(name)) topics.set(name, { subscribers: [], published: 0 });
    return topics.get(name);
  };
  const server = createServer((request, response) => {
    const topic = topicOf(request.url);
    if (request.method === 'GET') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
      topic.subscribers.push(response);
      return;
    }
    let body = '';
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      const isLost = topic.published++ === 0;
      for (const each of isLost ? [] : topic.subscribers) each.write('data: ' + body + '\\n\\n');
      response.end('ok');
    });
  });
  server.listen(Number(what === 'worker' ? args[0] : 0), '127.0.0.1', () => {
    console.log(JSON.stringify({ msg: 'listening', port: server.address().port }));
  });
  process.once('disconnect', () => process.exit());
}
`;

const noCompiler = spawnSync('cc', ['--version']).error !== undefined;
const skip = noCompiler && !process.env.CI ? 'the load client needs a C compiler' : false;

describe('the bench beside others', { skip }, () => {
  let directory = '';
  let server = '';

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gapless-bench-peers-'));
    server = join(directory, 'loses-events.mjs');
    await writeFile(server, LOSES_EVENTS);
    await chmod(server, 0o755);
  });
  after(() => rm(directory, { recursive: true }));

  async function measure(
    ...more: string[]
  ): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const only = 'gapless-publish,node-http-publish';
    const child = spawn(process.execPath, [BENCH, '--smoke', '--peers', '--only', only, ...more], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // The module is only looked for.
      env: { ...process.env, BENCH_NGINX: server, BENCH_NCHAN: server },
    });
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { code, stdout, stderr };
  }

  test('says of one that loses events each time that it does, and measures the rest', async () => {
    const [json, svg] = [join(directory, 'result.json'), join(directory, 'result.svg')];
    const { code, stdout, stderr } = await measure('--json', json, '--svg', svg);
    assert.equal(code, 0, stderr);
    const fault = 'lost events in 5 of 5 tries';
    assert.match(stdout, new RegExp(`^nchan-publish .* ${fault}$`, 'm'));
    assert.match(await readFile(svg, 'utf8'), new RegExp(fault));
    const { scenarios } = JSON.parse(await readFile(json, 'utf8'));
    const [nchan, gapless, node] = scenarios;
    assert.deepEqual([nchan.name, nchan.spread, nchan.fault], ['nchan-publish', null, fault]);
    assert.equal(gapless.ratio, null);
    for (const each of [gapless, node]) {
      assert.ok(each.spread.median > 0, `${each.name} has a number`);
      assert.equal(each.fault, null);
    }
  });

  test('fails without a number when this broker loses events', async () => {
    const { code, stdout, stderr } = await measure('--broker', server);
    assert.equal(code, 1, stdout);
    assert.equal(stdout, '');
    assert.match(stderr, /no result: mode peer ended with exit code 1\nload: subscriber \d+: gap: /);
  });
});
