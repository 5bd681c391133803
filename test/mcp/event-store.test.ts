import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { GaplessClient } from '#gapless/client/client.js';
import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { seededPrng } from '../support/prng.js';
import { progressText, resultText } from './counting-tool.js';
import { type McpAnswer, RawSession, type Received } from './raw-session.js';
import { SdkServer, type SdkVersion } from './sdk-server.js';

const HISTORY_GONE = -32017;

/** What the progress notifications among messages say, in their order. */
function progressOf(messages: readonly Received[]): unknown[] {
  return messages
    .filter(({ message }) => message.method === 'notifications/progress')
    .map(({ message }) => message.params?.message);
}

const texts = (label: string, first: number, last: number): string[] =>
  range(first, last).map((n) => progressText(label, n));

const textOf = (result: Record<string, unknown> | undefined): unknown =>
  (result?.content as { text: string }[])[0]?.text;

for (const version of [1, 2] as SdkVersion[]) {
  describe(`an event store behind a server of the SDK, version ${version}`, () => {
    const broker = useBroker();
    let server: SdkServer;
    /** Stands in for `fetch` between the stores and the broker. */
    let wire: typeof fetch = fetch;
    let limits: { eventsMax?: number } = {};
    const client = (): GaplessClient => new GaplessClient({ url: `http://127.0.0.1:${broker.port}` });

    before(async () => {
      server = await SdkServer.start({
        version,
        storeOf: (session) =>
          new GaplessEventStore({
            broker: { url: `http://127.0.0.1:${broker.port}`, fetch: (...request) => wire(...request) },
            session,
            ...limits,
          }),
      });
    });
    after(() => server.stop());

    const open = (): Promise<RawSession> => RawSession.open(server.url);

    /** A call that is cut after some steps, with a label of its own. */
    async function cutCall(
      session: RawSession,
      id: string | number,
      label: string,
      { steps = 20, holdAfter = 5 } = {},
    ): Promise<{ lastId: string; seen: Received[]; answer: McpAnswer }> {
      const answer = await session.call(id, 'count', { label, steps, holdAfter });
      const seen = (await answer.count(holdAfter)).slice();
      answer.cut();
      await answer.ended;
      return { lastId: answer.lastEventId, seen, answer };
    }

    it('row 22, 23: what is sent while nobody listens is kept, from the priming id on', async () => {
      const session = await open();
      const answer = await session.call(7, 'count', { label: 'alone', steps: 20, holdAfter: 0 });
      const primed = await answer.priming();
      assert.equal(answer.retryMs, 20);
      answer.cut();
      server.gates.open('alone');
      const resumed = await session.get(primed);
      assert.equal(textOf((await resumed.result(7)).result), resultText('alone', 20));
      assert.deepEqual(progressOf(resumed.messages), texts('alone', 1, 20));
      resumed.cut();
    });

    it('row 2: a resume gets its own stream, the rest of it and then what comes', async () => {
      const session = await open();
      const a = await cutCall(session, 1, `a${version}`);
      const b = await cutCall(session, 2, `b${version}`);
      server.gates.open(`b${version}`);
      const resumed = await session.get(a.lastId);
      server.gates.open(`a${version}`);
      await resumed.result(1);
      assert.deepEqual(progressOf([...a.seen, ...resumed.messages]), texts(`a${version}`, 1, 20));
      const other = await session.get(b.lastId);
      await other.result(2);
      assert.deepEqual(progressOf([...b.seen, ...other.messages]), texts(`b${version}`, 1, 20));
      resumed.cut();
      other.cut();
    });

    it('row 1: the stream that belongs to no call is resumed as well', async () => {
      const session = await open();
      const listening = await session.get();
      await server.announce(session.id);
      const [{ id } = { id: '' }] = await listening.count(1);
      listening.cut();
      await listening.ended;
      await server.announce(session.id);
      await server.announce(session.id);
      const resumed = await session.get(id);
      // Where it came back sooner than the log had the first it is told its position before that.
      await resumed.countOf('notifications/tools/list_changed', 2);
      await server.announce(session.id);
      const changes = await resumed.countOf('notifications/tools/list_changed', 3);
      assert.equal(new Set([id, ...changes.map((change) => change.id)]).size, 4);
      resumed.cut();
    });

    it('a burst of 200 in one turn is replayed whole and in order', async () => {
      const session = await open();
      const { lastId, seen } = await cutCall(session, 'burst', 'burst', { steps: 205 });
      server.gates.open('burst');
      const resumed = await session.get(lastId);
      await resumed.result('burst');
      assert.deepEqual(progressOf([...seen, ...resumed.messages]), texts('burst', 1, 205));
      resumed.cut();
    });

    it('a broker that answers late and unevenly changes no order: as written, so numbered', async (context) => {
      const prng = seededPrng(context);
      wire = async (...request) => {
        await new Promise((resolve) => setTimeout(resolve, prng.below(8)));
        return fetch(...request);
      };
      try {
        const session = await open();
        const answers = await Promise.all(
          range(1, 4).map((n) => session.call(n, 'count', { label: `late ${n}`, steps: 50 })),
        );
        for (const [index, answer] of answers.entries()) {
          await answer.result(index + 1);
          assert.deepEqual(progressOf(answer.messages), texts(`late ${index + 1}`, 1, 50));
          const seqs = answer.messages.map(({ id }) => Number(id.split('.').at(-1)));
          assert.deepEqual(
            seqs,
            [...seqs].sort((a, b) => a - b),
          );
          answer.cut();
        }
      } finally {
        wire = fetch;
      }
    });

    it('row 15: a response that is on its way into the log comes after the replay', async () => {
      const session = await open();
      const label = 'on its way';
      const { lastId } = await cutCall(session, 1, label, { steps: 5 });
      let goOn: () => void = () => undefined;
      const held = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      let isAppending: () => void = () => undefined;
      const appending = new Promise<void>((resolve) => {
        isAppending = resolve;
      });
      wire = async (...request) => {
        const said = await new Response(request[1]?.body ?? null).text();
        if (said.includes(resultText(label, 5))) {
          isAppending();
          await held;
        }
        return fetch(...request);
      };
      try {
        server.gates.open(label);
        await appending;
        const resumed = await session.get(lastId);
        goOn();
        assert.equal(textOf((await resumed.result(1)).result), resultText(label, 5));
        resumed.cut();
      } finally {
        goOn();
        wire = fetch;
      }
    });

    it('row 16: what comes while a replay is under way is in it, or after it, once', async () => {
      const session = await open();
      const label = 'between';
      const { lastId, seen } = await cutCall(session, 1, label, { steps: 60 });
      let goOn: () => void = () => undefined;
      const held = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      let isReading: () => void = () => undefined;
      const reading = new Promise<void>((resolve) => {
        isReading = resolve;
      });
      // The replay knows how far it goes, and is held there while the call goes on.
      wire = async (...request) => {
        const answer = await fetch(...request);
        if (String(request[0]).endsWith('/state')) {
          isReading();
          await held;
        }
        return answer;
      };
      try {
        const resuming = session.get(lastId);
        await reading;
        server.gates.open(label);
        const name = `mcp:${session.id}`;
        await eventually('the rest of the call in the log', async () => {
          const state = await client().state(name);
          return state !== null && state.head >= 5 + 55 + 2;
        });
        goOn();
        const resumed = await resuming;
        await resumed.result(1);
        assert.deepEqual(progressOf([...seen, ...resumed.messages]), texts(label, 1, 60));
        resumed.cut();
      } finally {
        wire = fetch;
      }
    });

    it('row 10: a call whose messages are gone is ended, under its own id, and nothing follows', async () => {
      limits = { eventsMax: 5 };
      const session = await open().finally(() => {
        limits = {};
      });
      const label = 'evicted';
      const { lastId } = await cutCall(session, 'its own', label);
      const filler = await session.call(2, 'count', { label: 'filler', steps: 100 });
      await filler.result(2);
      filler.cut();
      const resumed = await session.get(lastId);
      const { error } = await resumed.result('its own');
      assert.equal(error?.code, HISTORY_GONE);
      assert.equal(error?.data?.reason, 'evicted');
      server.gates.open(label);
      // What the call still says goes into the log before this, and would have been written before it.
      const later = await session.call(9, 'count', { label: 'later', steps: 1 });
      await later.result(9);
      later.cut();
      await nextTurn();
      assert.equal(resumed.messages.length, 1);
      // Whoever comes back with the id of that error is refused, and not with 404, which would end the session.
      const again = await session.get(resumed.lastEventId);
      assert.equal(again.status, 500);
      resumed.cut();

      const listening = await session.get();
      await server.announce(session.id);
      const [{ id } = { id: '' }] = await listening.count(1);
      listening.cut();
      const more = await session.call(3, 'count', { label: 'filler', steps: 100 });
      await more.result(3);
      more.cut();
      const warned = await session.get(id);
      await warned.count(4);
      await server.announce(session.id);
      const methods = (await warned.count(5)).map(({ message }) => message.method);
      assert.deepEqual(methods, [
        'notifications/message',
        'notifications/tools/list_changed',
        'notifications/prompts/list_changed',
        'notifications/resources/list_changed',
        'notifications/tools/list_changed',
      ]);
      // From where it was told so it goes on like any other.
      warned.cut();
      await warned.ended;
      await server.announce(session.id);
      const resumedAgain = await session.get(warned.lastEventId);
      // Where it came back sooner than the log had the change it is told its position before that.
      const { id: changeId } = await resumedAgain.until(
        ({ message }) => message.method === 'notifications/tools/list_changed',
      );
      assert.equal(resumedAgain.messages.at(-1)?.id, changeId);
      assert.notEqual(changeId, warned.lastEventId);
      resumedAgain.cut();
    });

    it('row 7: a cursor of another session gives nothing of it', async () => {
      const [mine, other] = [await open(), await open()];
      const { lastId } = await cutCall(other, 5, `foreign${version}`);
      server.gates.open(`foreign${version}`);
      const answer = await mine.get(lastId);
      const { error } = await answer.result(5);
      assert.equal(error?.code, HISTORY_GONE);
      assert.equal(answer.messages.length, 1);
      answer.cut();
    });

    it('row 8: what is no id is refused, and the session lives', async () => {
      const session = await open();
      for (const id of ['x', '_GET_stream', 'a.b.c.d', '1'])
        assert.equal((await session.get(id)).status, 500);
      const answer = await session.call(1, 'count', { label: 'alive', steps: 1 });
      await answer.result(1);
      answer.cut();
    });

    it('row 18: the newest reader takes over from one that was thought to be alive', async () => {
      const session = await open();
      const label = `half open${version}`;
      const first = await session.call(1, 'count', { label, steps: 10, holdAfter: 5 });
      await first.count(5);
      const second = await session.get(first.lastEventId);
      assert.equal(second.status, 200);
      await first.ended;
      server.gates.open(label);
      await second.result(1);
      assert.deepEqual(progressOf([...first.messages, ...second.messages]), texts(label, 1, 10));
      second.cut();
    });

    it('row 3, 11: a connection on which nothing was missed still says where it is', async () => {
      const session = await open();
      const label = `empty${version}`;
      const { lastId } = await cutCall(session, 1, label);
      const other = await session.call(2, 'count', { label: 'other', steps: 1 });
      await other.result(2);
      other.cut();
      const resumed = await session.get(lastId);
      const [mark] = await resumed.count(1);
      assert.equal(mark?.message.method, 'notifications/gapless/position');
      assert.notEqual(mark?.id, lastId);
      resumed.cut();
      await resumed.ended;
      server.gates.open(label);
      const last = await session.get(resumed.lastEventId);
      await last.result(1);
      assert.deepEqual(progressOf(last.messages), texts(label, 6, 20));
      last.cut();
    });

    it('a session that is ended leaves nothing behind', async () => {
      const session = await open();
      const answer = await session.call(1, 'count', { label: 'short', steps: 1 });
      await answer.result(1);
      answer.cut();
      assert.notEqual(await client().state(`mcp:${session.id}`), null);
      assert.equal((await session.delete()).status, 200);
      assert.equal(await client().state(`mcp:${session.id}`), null);
    });
  });
}
