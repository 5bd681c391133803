import { type Check, range, type Section } from './check.js';
import { expect, expectCursor, expectEqual, expectProblem, expectStatus, skip } from './expect.js';
import { MEDIA, positionsOf, type Target } from './target.js';

const CONFIG = {
  retention: { events: 100, bytes: 1_048_576, ageMs: 60_000 },
  overflow: 'evict',
  ttlMs: 3_600_000,
};
const EVENT_BYTES = 1000;

const creation: Check[] = [
  {
    section: '2.1',
    what: 'PUT creates with 201, the whole configuration and Gapless-Epoch; again, with 200 and the same epoch',
    async run(target) {
      const name = target.freshName();
      const first = await target.put(name, CONFIG);
      expectStatus(first, 201, 'the first PUT');
      const { epoch, ...rest } = first.json() as { epoch: string };
      expectEqual(rest, { name, ...CONFIG }, 'what PUT answers');
      expectEqual(first.header('gapless-epoch'), epoch, 'Gapless-Epoch of PUT');
      const again = await target.put(name, CONFIG);
      expectStatus(again, 200, 'the same PUT');
      expectEqual(again.json(), first.json(), 'the answer to the same PUT');
    },
  },
  {
    section: '2.1',
    what: 'a PUT without a body takes everything from the settings of the server',
    async run(target) {
      const path = `/v1/streams/${target.freshName()}`;
      const answer = await target.exchange({ method: 'PUT', path });
      expectStatus(answer, 201, 'PUT without a body');
      const { retention, overflow, ttlMs } = answer.json() as typeof CONFIG;
      const limits = [retention?.events, retention?.bytes, retention?.ageMs, ttlMs];
      expect(limits.every(Number.isSafeInteger), `${answer.text} is not the whole configuration`);
      expect(overflow === 'evict' || overflow === 'reject', `overflow is ${overflow}`);
    },
  },
  {
    section: '2.1',
    what: 'another configuration is 409 config_conflict with the standing one, and changes nothing',
    async run(target) {
      const { name } = await target.createStream(CONFIG);
      const answer = await target.put(name, { ...CONFIG, ttlMs: 1000 });
      const { config } = expectProblem(answer, 409, 'config_conflict', 'another configuration');
      for (const [member, value] of Object.entries(CONFIG))
        expectEqual((config as Record<string, unknown>)[member], value, `config.${member}`);
      expectStatus(await target.put(name, CONFIG), 200, 'the standing configuration');
    },
  },
  {
    section: '2.1',
    what: 'a configuration that is not valid is 400 invalid_config with all problems at once, and creates nothing',
    async run(target) {
      const name = target.freshName();
      const wrong = { retention: { events: -1, bytes: 'many', ageMs: 999 }, overflow: 'wait', colour: 'red' };
      const answer = await target.put(name, wrong);
      const { problems } = expectProblem(answer, 400, 'invalid_config', 'five problems');
      expect(Array.isArray(problems) && problems.length >= 5, `of five problems it names ${answer.text}`);
      for (const problem of problems as Record<string, unknown>[])
        expect('field' in problem && 'expected' in problem, 'a problem without field and expected');
      expectProblem(await target.get(`/v1/streams/${name}/state`), 404, 'stream_not_found', 'its state');
    },
  },
  {
    section: '2.1',
    what: 'a body that is not JSON is 400 invalid_body, one above 16 KiB 413, one of a foreign type 415',
    async run(target) {
      const path = `/v1/streams/${target.freshName()}`;
      const put = (body: string, type: string) =>
        target.exchange({ method: 'PUT', path, headers: { 'Content-Type': type }, body });
      expectProblem(await put('{"ttlMs":', MEDIA.json), 400, 'invalid_body', 'half a JSON');
      const large = JSON.stringify({ overflow: 'x'.repeat(16 * 1024) });
      expectProblem(await put(large, MEDIA.json), 413, 'body_too_large', 'more than 16 KiB');
      expectProblem(await put('{}', 'text/html'), 415, 'unsupported_type', 'text/html');
    },
  },
  {
    section: '2.1',
    what: 'retention by events keeps the newest so many at least, and evicts above twice that',
    async run(target) {
      const { name } = await target.createStream({ retention: { events: 50 } });
      const line = (index: number) => `${index} `.padEnd(EVENT_BYTES, '.');
      for (const batch of range(0, 9))
        await target.publishLines(
          name,
          range(1, 50).map((index) => line(batch * 50 + index)),
        );
      const { floor, head } = await target.eventually('eviction', async () => {
        const positions = await target.positions(name);
        return positions.floor > 1 && positions;
      });
      expectEqual(head, 500, 'the head');
      expect(floor <= 451, `of the newest 50 events only ${floor}..${head} are kept`);
    },
  },
  {
    section: '2.1',
    what: 'a stream that nobody uses is gone after its ttlMs',
    async run(target) {
      const { name } = await target.createStream({ ttlMs: 1000 });
      await target.eventually('the end of its time to live', async () => {
        return (await target.get(`/v1/streams/${name}/state`)).status === 404;
      });
    },
  },
];

const looking: Check[] = [
  {
    section: '2.2',
    what: 'the list is in the order of names, by prefix, in pieces of `limit`, and `next` leads through it',
    async run(target) {
      const prefix = `${target.freshName('list')}-`;
      const names = [];
      for (const letter of 'dbeac') {
        const name = `${prefix}${letter}`;
        expectStatus(await target.put(name, {}), 201, 'creating a stream');
        names.push(name);
      }
      const listed: string[] = [];
      for (let after: string | null = ''; after !== null; ) {
        const query = `prefix=${prefix}&limit=2${after === '' ? '' : `&after=${after}`}`;
        const answer = await target.get(`/v1/streams?${query}`);
        expectStatus(answer, 200, 'the list');
        const { streams, next } = answer.json() as { streams: { name: string }[]; next: string | null };
        expect(
          streams.length <= 2 && listed.length <= names.length,
          `${streams.length} streams with limit=2`,
        );
        listed.push(...streams.map(({ name }) => name));
        after = next;
      }
      for (const name of names) await target.exchange({ method: 'DELETE', path: `/v1/streams/${name}` });
      expectEqual(listed, names.sort(), 'the listed names');
    },
  },
  {
    section: '2.2',
    what: '`state` and HEAD agree on the positions, before and after a publish',
    async run(target) {
      const { name, epoch } = await target.createStream(CONFIG);
      for (const head of range(0, 2)) {
        if (head > 0) await target.publish(name, `event ${head}`);
        const state = (await target.get(`/v1/streams/${name}/state`)).json() as Record<string, unknown>;
        for (const [member, value] of Object.entries({
          name,
          epoch,
          ...CONFIG,
          head,
          committed: head,
          closed: false,
        }))
          expectEqual(state[member], value, `${member} in the state`);
        const answer = await target.exchange({ method: 'HEAD', path: `/v1/streams/${name}` });
        expectEqual(answer.body.length, 0, 'the length of the body of HEAD');
        const positions = positionsOf((header) => answer.header(header), 'HEAD');
        expectEqual(positions, { epoch, floor: 1, head }, 'the positions by HEAD');
        expectEqual(answer.header('gapless-cursor'), `${epoch}.${head}`, 'Gapless-Cursor');
        expectEqual(answer.header('gapless-closed'), 'false', 'Gapless-Closed');
      }
    },
  },
  {
    section: '2.2',
    what: 'looking at a stream that is not there is 404 stream_not_found, and creates nothing',
    async run(target) {
      const name = target.freshName();
      for (const _time of range(1, 2)) {
        const path = `/v1/streams/${name}`;
        expectProblem(await target.get(`${path}/state`), 404, 'stream_not_found', 'the state');
        expectStatus(await target.exchange({ method: 'HEAD', path }), 404, 'HEAD');
      }
    },
  },
];

const ending: Check[] = [
  {
    section: '2.3',
    what: 'a closed stream takes nothing more, says so with its last cursor, and can be read',
    async run(target) {
      const { name, epoch } = await target.createStream();
      await target.publishLines(name, ['a', 'b']);
      for (const time of ['closing', 'closing again']) {
        const answer = await target.exchange({ method: 'POST', path: `/v1/streams/${name}/close` });
        expectStatus(answer, 200, time);
        expectEqual(answer.json(), { cursor: `${epoch}.2`, closed: true }, time);
      }
      const { cursor } = expectProblem(await target.post(name, 'c'), 409, 'stream_closed', 'publishing then');
      expectEqual(cursor, `${epoch}.2`, 'the cursor in the refusal');
      const page = (await target.page(name)).json() as { events: unknown[]; closed: boolean };
      expectEqual([page.events.length, page.closed], [2, true], 'events and `closed` of a page');
      const head = await target.exchange({ method: 'HEAD', path: `/v1/streams/${name}` });
      expectEqual(head.header('gapless-closed'), 'true', 'Gapless-Closed');
    },
  },
  {
    section: '2.3',
    what: 'DELETE is 204, and what is made anew under the name has another epoch and begins at 1',
    async run(target) {
      const { name, epoch } = await target.createStream();
      await target.publishLines(name, ['a', 'b']);
      const path = `/v1/streams/${name}`;
      expectStatus(await target.exchange({ method: 'DELETE', path }), 204, 'DELETE');
      expectProblem(
        await target.exchange({ method: 'DELETE', path }),
        404,
        'stream_not_found',
        'DELETE again',
      );
      expectStatus(await target.put(name, {}), 201, 'creating it again');
      const published = await target.publish(name, 'new');
      expect(published.epoch !== epoch, `the epoch ${epoch} was given again`);
      expectEqual(published.first, 1, 'the first seq of the new stream');
    },
  },
  {
    section: '2.3',
    what: 'closing what is not there is 404 stream_not_found',
    async run(target) {
      const path = `/v1/streams/${target.freshName()}/close`;
      expectProblem(
        await target.exchange({ method: 'POST', path }),
        404,
        'stream_not_found',
        'closing nothing',
      );
    },
  },
];

const names: Check[] = [
  {
    section: '2.4',
    what: 'a name is 1 to 200 characters of [A-Za-z0-9._~:-]; any other is 400 invalid_stream_name',
    async run(target) {
      const base = `${target.freshName('name')}.A~b:c_`;
      const good = [base, base.padEnd(200, 'x')];
      for (const name of good) {
        expectStatus(await target.put(name, {}), 201, `the name ${name}`);
        await target.exchange({ method: 'DELETE', path: `/v1/streams/${name}` });
      }
      for (const name of [
        '.',
        '..',
        base.padEnd(201, 'x'),
        `${base}%20`,
        `${base}%41`,
        `${base}+`,
        `${base}@`,
        `${base},`,
      ])
        expectProblem(await target.put(name, {}), 400, 'invalid_stream_name', `the name ${name}`);
    },
  },
  {
    section: '2.4',
    what: 'publishing or subscribing creates a stream that is not there, or is 404 stream_not_found',
    async run(target) {
      const published = target.freshName();
      const first = await target.post(published, 'one');
      if (first.status === 404) {
        expectProblem(first, 404, 'stream_not_found', 'publishing without auto-create');
        const refused = await target.ask(target.freshName());
        expectProblem(await refused.refusal(), 404, 'stream_not_found', 'subscribing without auto-create');
        return skip('the server does not create streams by itself, and says so; needs --auto-create');
      }
      expectEqual((first.json() as { first: number }).first, 1, 'the first seq');
      const subscribed = target.freshName();
      const subscription = await target.subscribe(subscribed);
      await subscription.untilPrimed();
      expectCursor(subscription.lastId, 'the priming id of a stream that was just made');
      await target.publish(subscribed, 'one');
      await subscription.untilEvents(1);
      subscription.close();
    },
  },
  {
    section: '2.4',
    what: 'a cursor of an epoch, Gapless-If-Head and a page without `wait` create nothing',
    async run(target) {
      const name = target.freshName();
      const cursor = 'abcdefghij.3';
      expectStatus(await (await target.ask(name, { lastEventId: cursor })).refusal(), 410, 'a cursor');
      expectStatus(
        await target.post(name, 'x', MEDIA.text, { 'Gapless-If-Head': cursor }),
        412,
        'Gapless-If-Head',
      );
      expectProblem(await target.page(name), 404, 'stream_not_found', 'a page');
      await expectAbsent(target, name);
    },
  },
];

async function expectAbsent(target: Target, name: string): Promise<void> {
  const state = await target.get(`/v1/streams/${name}/state`);
  expectProblem(state, 404, 'stream_not_found', 'the state after that');
}

export const streams: Section = {
  number: '2',
  title: 'Streams',
  checks: [...creation, ...looking, ...ending, ...names],
};
