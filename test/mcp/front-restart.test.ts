import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { DurableBroker, makeDirectory, removeDirectory } from '../support/durable-broker.js';
import {
  changed,
  firstMessageId,
  McpClient,
  messagesOf,
  numbersOf,
  progressOf,
  restOf,
  untilMessages,
} from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { scrape, total } from '../support/prometheus.js';
import type { SseSubscription } from '../support/sse-client.js';

const STDIO_SERVER = fileURLToPath(new URL('../support/mcp-stdio-server.js', import.meta.url));

/** So many that to take them up takes longer than to begin to listen. */
const SESSIONS = 150;

/** What is done before the front ends, and what is so afterwards. */
interface Scenario {
  /** The server behind the front; absent: a scripted one. */
  readonly upstream?: string;
  readonly prepare: (there: Stage) => Promise<() => Promise<void>>;
}

interface Stage {
  readonly upstream: McpUpstream;
  /** A new session. */
  open(): Promise<McpClient>;
  readonly url: string;
  /** Whether the front has no time to write anything down at its end. */
  readonly isKilled: boolean;
}

const priming = (id: string) => `id: ${id}\ndata: \n\n`;

/** A call of the client's own, whole. */
async function answered(client: McpClient, { upstream }: Stage, result = {}): Promise<SseSubscription> {
  const call = await client.call(client.newId() + 1000);
  (await upstream.nextCall()).json(result);
  await call.untilEnded();
  assert.deepEqual(messagesOf(call).at(-1)?.result, result);
  return call;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  '12.11 (4) a session goes on, here and at the server': {
    async prepare(stage) {
      const client = await stage.open();
      return async () => {
        const call = await client.call(1);
        const there = await stage.upstream.nextCall();
        assert.equal(there.header('mcp-session-id'), 'upstream-session');
        assert.equal(there.header('mcp-protocol-version'), '2025-11-25');
        there.json({ still: 'here' });
        await call.untilEnded();
        assert.deepEqual(messagesOf(call).at(-1)?.result, { still: 'here' });
        assert.equal(stage.upstream.seen.filter((seen) => seen === 'POST initialize').length, 1);
        assert.ok(!stage.upstream.seen.includes('DELETE'));
      };
    },
  },

  '12.3 (22) an answered call is read again from any id, exactly, and then ends': {
    async prepare({ upstream, open }) {
      const client = await open();
      const call = await client.call('whole');
      const there = (await upstream.nextCall()).stream();
      for (let n = 1; n <= 5; n++) there.progress(n, `event-${n}`);
      there.finish({ done: true });
      await call.untilEnded();
      return async () => {
        const ids = call.events.map(({ id }) => id as string);
        for (const [given, id] of ids.slice(0, -1).entries()) {
          assert.deepEqual(await restOf(client, id), messagesOf(call).slice(given));
        }
        assert.equal((await client.get(ids.at(-1))).status, 405);
      };
    },
  },

  '12.11 a call that was under way is taken up at the server, and nothing comes twice': {
    async prepare({ upstream, open }) {
      upstream.listens = true;
      const client = await open();
      const call = await client.call(7);
      const there = (await upstream.nextCall()).stream();
      there.raw(priming('primed')).progress(1, 'first').progress(2, 'second');
      await untilMessages(call, 2);
      return async () => {
        const resumed = await upstream.nextListener();
        assert.equal(resumed.header('last-event-id'), 'second');
        assert.equal(resumed.header('mcp-session-id'), 'upstream-session');
        resumed.stream().progress(3, 'third');
        const again = await client.read(call.lastEventId);
        await untilMessages(again, 1);
        resumed.say({ jsonrpc: '2.0', id: 7, result: {} }, 'fourth').response.end();
        assert.equal(await again.untilEnded(), 'end');
        assert.deepEqual(progressOf(again), [3]);
        assert.deepEqual(messagesOf(again).at(-1)?.result, {});
        const more = await restOf(client, firstMessageId(call));
        assert.deepEqual(more.map(({ params }) => params?.progress).slice(0, -1), [2, 3]);
      };
    },
  },

  '12.11 (15) the same for one of which the server has said nothing but where it is': {
    async prepare(stage) {
      const { upstream, open } = stage;
      upstream.listens = true;
      const client = await open();
      const call = await client.call(1);
      const there = (await upstream.nextCall()).stream();
      there.raw(priming('old') + priming('primed'));
      // Its answer comes on the same connections and is committed later.
      await answered(client, stage);
      await answered(client, stage);
      return async () => {
        const resumed = await upstream.nextListener();
        assert.equal(resumed.header('last-event-id'), 'primed');
        resumed.stream().say({ jsonrpc: '2.0', id: 1, result: { late: true } });
        assert.deepEqual((await restOf(client, call.lastEventId)).at(-1)?.result, { late: true });
      };
    },
  },

  '12.11 (20) what cannot be taken up is answered with an error, after all that had come': {
    async prepare({ upstream, open }) {
      const client = await open();
      const call = await client.call('lost');
      (await upstream.nextCall()).stream().progress(1).progress(2);
      await untilMessages(call, 2);
      return async () => {
        const [progress, last, ...more] = await restOf(client, firstMessageId(call));
        assert.deepEqual(more, []);
        assert.equal(progress?.params?.progress, 2);
        assert.equal(last?.id, 'lost');
        assert.equal(last?.error?.code, -32016);
        assert.deepEqual(last?.error?.data, { reason: 'broken' });
      };
    },
  },

  '12.11 a server that refuses to take a call up is told of': {
    async prepare({ upstream, open }) {
      upstream.listens = true;
      const client = await open();
      const call = await client.call(1);
      (await upstream.nextCall()).stream().progress(1, 'one');
      await untilMessages(call, 1);
      return async () => {
        (await upstream.nextListener()).answer(400);
        const [last] = await restOf(client, call.lastEventId);
        assert.deepEqual(last?.error?.data, { reason: 'refused', status: 400 });
      };
    },
  },

  '12.5 no error is made up for a call that was cancelled, and an answer is passed on once': {
    async prepare(stage) {
      const client = await stage.open();
      const call = await client.call(1);
      const there = (await stage.upstream.nextCall()).stream();
      there.say({ jsonrpc: '2.0', id: 'asked', method: 'sampling/createMessage', params: {} });
      await untilMessages(call, 1);
      const answer = { jsonrpc: '2.0', id: 'asked', result: {} };
      assert.equal((await client.post(answer)).status, 202);
      assert.equal((await client.notify('notifications/cancelled', { requestId: 1 })).status, 202);
      // What was written down before it is committed with it.
      await answered(client, stage);
      return async () => {
        const seen = stage.upstream.seen.length;
        assert.equal((await client.post(answer)).status, 202);
        assert.equal(stage.upstream.seen.length, seen, 'it was passed on a second time');
        assert.equal((await client.get(call.lastEventId)).status, 405, 'all that came was given');
      };
    },
  },

  '12.3 the session’s own stream goes on, at the server as well': {
    async prepare({ upstream, open }) {
      upstream.listens = true;
      const client = await open();
      const own = await client.read();
      (await upstream.nextListener()).stream().say(changed(1), 'one').say(changed(2), 'two');
      await untilMessages(own, 2);
      return async () => {
        const listened = await upstream.nextListener();
        assert.equal(listened.header('last-event-id'), 'two');
        listened.stream().say(changed(3), 'three');
        const again = await client.read(firstMessageId(own));
        await untilMessages(again, 2);
        assert.deepEqual(numbersOf(again), [2, 3]);
        again.cut();
      };
    },
  },

  '12.2 without an id it begins with what nobody was given; where that is not known, it says so': {
    async prepare({ upstream, open, isKilled }) {
      upstream.listens = true;
      const client = await open();
      const own = await client.read();
      const there = (await upstream.nextListener()).stream();
      there.say(changed(1), 'one');
      await untilMessages(own, 1);
      return async () => {
        const listened = await upstream.nextListener();
        // How much of it has got through only this client knows, and it does not say.
        const again = await client.read();
        listened.stream().say(changed(2), 'two');
        await again.until('what is new', () => numbersOf(again).includes(2));
        const methods = messagesOf(again).map(({ method }) => method);
        const told = ['notifications/tools/list_changed', 'notifications/message'];
        // Who is told to end may get to write down how far its reader came.
        const isKnown = !isKilled && methods.length === 1;
        assert.deepEqual(methods, isKnown ? told.slice(1) : told);
        again.cut();
      };
    },
  },

  '12.1 (4) a session that has ended stays so': {
    async prepare({ open }) {
      const [ended, other] = [await open(), await open()];
      assert.equal((await ended.delete()).status, 200);
      return async () => {
        assert.equal((await ended.notify('ping')).status, 404);
        assert.equal((await ended.get()).status, 404);
        assert.equal((await other.notify('ping')).status, 202);
      };
    },
  },

  '12.1 (7) ids of one session are no ids of another, and made up ones of none': {
    async prepare(stage) {
      const [mine, theirs] = [await stage.open(), await stage.open()];
      const id = (await answered(theirs, stage, { secret: true })).events[0]?.id as string;
      return async () => {
        assert.equal((await mine.get(id)).status, 400);
        assert.equal((await theirs.get(id.replace(/^[^.]*/, 'WyJ-bWNwOiJd'))).status, 400);
        assert.deepEqual((await restOf(theirs, id)).at(-1)?.result, { secret: true });
      };
    },
  },

  '12.7 (20) calls of a program are answered, and the next call starts another': {
    upstream: `stdio:'${process.execPath}' ${STDIO_SERVER}`,
    async prepare({ open }) {
      const client = await open();
      const held = await client.call(1, 'tools/call', { name: 'hold', _meta: { progressToken: 1 } });
      await untilMessages(held, 1);
      return async () => {
        const [last] = await restOf(client, held.lastEventId);
        assert.deepEqual(last?.error?.data, { reason: 'broken' });
        const call = await client.call(2, 'tools/call', { name: 'tell' });
        await call.untilEnded();
        assert.deepEqual(messagesOf(call).at(-1)?.result, {});
      };
    },
  },
};

const ENDS: Readonly<Record<string, (broker: BrokerProcess) => Promise<unknown>>> = {
  SIGTERM: (broker) => broker.stop(),
  SIGKILL: (broker) => broker.kill(),
};

for (const [signal, end] of Object.entries(ENDS)) {
  describe(`a durable front that ends by ${signal} and starts again`, () => {
    const directory = makeDirectory();
    const upstreams: McpUpstream[] = [];
    const afterwards = new Map<string, () => Promise<void>>();
    let broker: BrokerProcess;

    before(async () => {
      const flags: string[] = [];
      for (const [index, { upstream }] of Object.values(SCENARIOS).entries()) {
        const scripted = await McpUpstream.start();
        upstreams.push(scripted);
        flags.push('--mcp', `/${index}=${upstream ?? scripted.url}`);
      }
      const first = await BrokerProcess.start('--data-dir', directory, '--drain-ms', '0', ...flags);
      for (const [index, [name, { prepare }]] of Object.entries(SCENARIOS).entries()) {
        const path = `/${index}`;
        const upstream = upstreams[index] as McpUpstream;
        const open = () => McpClient.open(first.port, { path });
        const url = `http://127.0.0.1:${first.port}${path}`;
        afterwards.set(name, await prepare({ upstream, open, url, isKilled: signal === 'SIGKILL' }));
      }
      await end(first);
      assert.deepEqual(first.errors, []);
      broker = await first.startAgain();
    });
    after(async () => {
      assert.deepEqual(await broker.stop(), { code: 0, signal: null }, broker.stderr);
      assert.deepEqual(broker.errors, []);
      for (const upstream of upstreams) await upstream.stop();
      removeDirectory(directory);
    });

    it('12.11 the metrics say how many sessions were taken up', async () => {
      // It listens before that: requests wait.
      const { sessions } = await broker.until('sessions taken up');
      const restored = total(await scrape(broker.port), 'gapless_mcp_sessions_restored_total');
      assert.ok(restored >= Object.keys(SCENARIOS).length);
      assert.equal(sessions, restored);
    });

    for (const name of Object.keys(SCENARIOS)) {
      it(name, () => (afterwards.get(name) as () => Promise<void>)());
    }
  });
}

describe('a durable front with many sessions', () => {
  it('12.11 that is told to end while it takes them up ends as it should, and the next one has them', async (context) => {
    const upstream = await McpUpstream.start();
    context.after(() => upstream.stop());
    const broker = await DurableBroker.start(context, '--mcp', `/mcp=${upstream.url}`);
    const clients = await Promise.all(range(1, SESSIONS).map(() => McpClient.open(broker.port)));
    await broker.killAndStart();
    await broker.restart();
    for (const client of clients) assert.equal((await client.notify('ping')).status, 202);
    await broker.end();
  });
});
