import type { Check, Section } from './check.js';
import { expect, expectEqual, expectProblem, expectStatus, skip } from './expect.js';
import { MEDIA } from './target.js';
import { WebSocketStream } from './websocket-stream.js';

/** No server lists it. */
const STRANGE_ORIGIN = 'https://nobody.invalid';

const checks: Check[] = [
  {
    section: '9.1',
    what: 'without a credential, or with one that is none, every route is 401 with a challenge and a reason',
    async run(target) {
      if (!target.hasToken) return skip('needs a server with keys, and --token');
      const { name } = await target.createStream();
      for (const [method, path] of [
        ['POST', `/v1/streams/${name}`],
        ['GET', `/v1/streams/${name}`],
        ['GET', `/v1/streams/${name}/state`],
        ['DELETE', `/v1/streams/${name}`],
        ['GET', '/v1/streams'],
      ] as const) {
        for (const [headers, reason] of [
          [{}, 'missing'],
          [{ Authorization: 'Basic x' }, 'scheme'],
          [{ Authorization: 'Bearer x.y.z' }, 'malformed'],
        ] as const) {
          const body = method === 'POST' ? { body: 'x' } : {};
          const question = { method, path, headers: { ...headers, Accept: MEDIA.json }, ...body };
          const answer = await target.exchangeAsNobody(question);
          const problem = expectProblem(answer, 401, 'unauthorized', `${method} ${path}`);
          expectEqual(problem.reason, reason, 'the reason');
          expect(answer.header('www-authenticate')?.startsWith('Bearer'), 'there is no challenge');
        }
      }
      expectEqual((await target.positions(name)).head, 0, 'the head after all');
    },
  },
  {
    section: '9.3',
    what: 'an origin that is on no list gets no permission, and OPTIONS is 204 on any path',
    async run(target) {
      const { name } = await target.createStream();
      const headers = { Origin: STRANGE_ORIGIN, 'Access-Control-Request-Method': 'POST' };
      for (const path of [`/v1/streams/${name}`, '/v1/streams', '/nothing']) {
        const answer = await target.exchange({ method: 'OPTIONS', path, headers });
        expectStatus(answer, 204, `OPTIONS ${path}`);
        expectEqual(answer.header('access-control-allow-origin'), undefined, 'Access-Control-Allow-Origin');
      }
      const answer = await target.get(`/v1/streams/${name}/state`, { Origin: STRANGE_ORIGIN });
      expectStatus(answer, 200, 'a request with an origin');
      expectEqual(answer.header('access-control-allow-origin'), undefined, 'Access-Control-Allow-Origin');
    },
  },
  {
    section: '9.3',
    what: 'a WebSocket of an origin that is on no list is 403 origin_not_allowed',
    async run(target) {
      const { name } = await target.createStream();
      const socket = await WebSocketStream.ask(target.endpoint, name, {
        headers: { Origin: STRANGE_ORIGIN },
      });
      expectProblem(await socket.refusal(), 403, 'origin_not_allowed', 'a strange origin');
    },
  },
];

export const security: Section = { number: '9', title: 'Security', checks };
