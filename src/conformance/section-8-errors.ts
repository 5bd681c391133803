import type { Check, Section } from './check.js';
import { expect, expectEqual, expectProblem, expectStatus } from './expect.js';
import { filledStream } from './filled-stream.js';

const checks: Check[] = [
  {
    section: '8',
    what: 'an unknown path is 404 not_found',
    async run(target) {
      const { name } = await filledStream(target, 1);
      for (const path of [
        '/nothing',
        '/v1',
        '/v2/streams',
        `/v1/streams/${name}/nothing`,
        `/v1/streams/${name}/state/x`,
      ])
        expectProblem(await target.get(path), 404, 'not_found', path);
    },
  },
  {
    section: '8',
    what: 'a known path with another method is 405 with Allow',
    async run(target) {
      const { name } = await filledStream(target, 1);
      const path = `/v1/streams/${name}`;
      for (const [method, at, allowed] of [
        ['PATCH', path, ['GET', 'POST', 'PUT', 'DELETE', 'HEAD']],
        ['POST', '/v1/streams', ['GET']],
        ['DELETE', `${path}/state`, ['GET']],
        ['PUT', `${path}/close`, ['POST']],
      ] as const) {
        const answer = await target.exchange({ method, path: at });
        expectProblem(answer, 405, 'method_not_allowed', `${method} ${at}`);
        const allow = (answer.header('allow') ?? '').split(/\s*,\s*/);
        for (const other of allowed)
          expect(allow.includes(other), `Allow of ${at} has no ${other}: ${allow}`);
      }
      expectEqual((await target.positions(name)).head, 1, 'the head after all');
    },
  },
  {
    section: '8',
    what: 'HEAD has the status of GET and no body, on errors too',
    async run(target) {
      const { name } = await filledStream(target, 1);
      for (const path of [
        '/nothing',
        '/v1/streams/a%20b',
        `/v1/streams/${name}/state`,
        `/v1/streams/${name}-absent/state`,
      ]) {
        const get = await target.get(path);
        const head = await target.exchange({ method: 'HEAD', path });
        expectStatus(head, get.status, `HEAD ${path}`);
        expectEqual(head.header('content-type'), get.header('content-type'), `the type of HEAD ${path}`);
        expectEqual(head.body.length, 0, `the length of the body of HEAD ${path}`);
      }
    },
  },
  {
    section: '8',
    what: 'a query parameter that is given twice or is not percent-encoded UTF-8 is 400 invalid_query',
    async run(target) {
      const { name, epoch } = await filledStream(target, 1);
      for (const query of [
        `cursor=${epoch}.0&cursor=${epoch}.1`,
        'limit=1&limit=1',
        'cursor=%zz',
        'cursor=%ff',
      ])
        expectProblem(await target.page(name, query), 400, 'invalid_query', `?${query}`);
    },
  },
  {
    section: '8',
    what: 'parameters that a path does not know are left alone',
    async run(target) {
      const { name } = await filledStream(target, 1);
      expectStatus(await target.page(name, 'colour=red&limit=5'), 200, 'an unknown parameter');
    },
  },
  {
    section: '8',
    what: 'a refusal changes nothing: after each the positions are what they were',
    async run(target) {
      const { name, epoch } = await filledStream(target, 3);
      const before = await target.positions(name);
      const refused = [
        await target.post(name, 'x', 'text/html'),
        await target.post(name, Uint8Array.of(0xff)),
        await target.post(name, 'x', 'text/plain', { 'Gapless-Event': 'stream_closed' }),
        await target.post(name, 'x', 'text/plain', { 'Gapless-If-Head': `${epoch}.1` }),
        await target.put(name, { ttlMs: 123_456 }),
        await target.exchange({ method: 'PATCH', path: `/v1/streams/${name}`, body: '{}' }),
        await (await target.ask(name, { lastEventId: `${epoch}.9` })).refusal(),
      ];
      for (const answer of refused) expect(answer.status >= 400, `a refusal was due, not ${answer.status}`);
      expectEqual(await target.positions(name), before, 'the positions after all');
    },
  },
];

export const errors: Section = { number: '8', title: 'Errors', checks };
