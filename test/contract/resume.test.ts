import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import {
  assertProblem,
  createStream,
  deleteStream,
  freshStream,
  MEDIA_TYPES,
  type Problem,
  publish,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';

const OTHER_EPOCH = 'zzzzzzzzzz';

describeOnEdges('4.4 resume', [], (broker) => {
  async function refusalOf(stream: string, lastEventId: string): Promise<Problem> {
    const subscription = await SseSubscription.ask(broker.port, stream, { lastEventId });
    const response = await subscription.refusal();
    assert.equal(response.header('cache-control'), 'no-store');
    return assertProblem(response, 410, 'resume_unavailable');
  }

  /** A stream that has lost its beginning: evictions, then events 1..head of which floor..head are there. */
  async function evicted(
    word: string,
  ): Promise<{ stream: string; epoch: string; floor: number; head: number }> {
    const stream = freshStream(word);
    await createStream(broker.port, stream, { retention: { events: 20 } });
    for (const seq of range(1, 75)) await publish(broker.port, stream, `event ${seq}`);
    const { epoch, floor, head } = await stateOf(broker.port, stream);
    assert.ok(floor > 20 && head === 75, `${floor}..${head}`);
    return { stream, epoch, floor, head };
  }

  it('4.4 a resume at every cursor of a stream gives each event after it exactly once and in order (I2)', async () => {
    const stream = freshStream('every');
    const contents = range(1, 60).map((seq) => `event ${seq}${seq % 7 === 0 ? '\nsecond line' : ''}`);
    for (const content of contents) await publish(broker.port, stream, content);
    const { epoch } = await stateOf(broker.port, stream);
    const subscriptions = await Promise.all(
      range(0, 60).map((seq) =>
        SseSubscription.open(broker.port, stream, { lastEventId: cursorOf(epoch, seq) }),
      ),
    );
    contents.push('live');
    await publish(broker.port, stream, 'live');
    for (const [seq, subscription] of subscriptions.entries()) {
      await subscription.untilSeq(61);
      assert.deepEqual(subscription.seqs, range(seq + 1, 61));
      assert.deepEqual(subscription.data, contents.slice(seq));
      subscription.cut();
    }
  });

  it('4.4 at every cursor of a stream that lost its beginning the resume is exact or refused, never partial (I2)', async () => {
    const { stream, epoch, floor, head } = await evicted('boundary');
    for (const seq of range(0, head + 3)) {
      const subscription = await SseSubscription.ask(broker.port, stream, {
        lastEventId: cursorOf(epoch, seq),
      });
      if (seq + 1 >= floor && seq <= head) {
        assert.equal(subscription.status, 200, `cursor ${seq} of ${floor}..${head} was refused`);
        if (seq < head) await subscription.untilSeq(head);
        else await subscription.untilPrimed();
        assert.deepEqual(subscription.seqs, range(seq + 1, head));
        subscription.cut();
      } else {
        const problem = assertProblem(await subscription.refusal(), 410, 'resume_unavailable');
        assert.equal(
          problem.reason,
          seq > head ? 'ahead_of_head' : 'evicted',
          `cursor ${seq} of ${floor}..${head}`,
        );
        assert.equal(subscription.eventCount, 0);
      }
    }
  });

  it('4.4 another epoch is refused as epoch_changed, whatever the seq', async () => {
    const stream = freshStream('epoch');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    for (const seq of [0, 1, 2, 3, Number.MAX_SAFE_INTEGER]) {
      const problem = await refusalOf(stream, cursorOf(OTHER_EPOCH, seq));
      const { reason, cursor, floor, head, earliest } = problem;
      assert.deepEqual([reason, cursor, problem.epoch], ['epoch_changed', cursorOf(OTHER_EPOCH, seq), epoch]);
      assert.deepEqual([floor, head, earliest], [1, 2, cursorOf(epoch, 0)]);
    }
  });

  it('4.4 a cursor beyond committed is refused as ahead_of_head', async () => {
    const stream = freshStream('ahead');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    for (const seq of [3, 4, 1_000_000, Number.MAX_SAFE_INTEGER]) {
      const { reason, floor, head, earliest } = await refusalOf(stream, cursorOf(epoch, seq));
      assert.deepEqual([reason, floor, head, earliest], ['ahead_of_head', 1, 2, cursorOf(epoch, 0)]);
    }
  });

  it('4.4 cursor = committed is live', async () => {
    const stream = freshStream('live');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    const subscription = await SseSubscription.open(broker.port, stream, { lastEventId: cursorOf(epoch, 2) });
    await publish(broker.port, stream, 'three');
    await subscription.untilEvents(1);
    assert.deepEqual(subscription.seqs, [3]);
    subscription.cut();
  });

  it('4.4 an evicted cursor is refused with all that the contract names, and `earliest` works', async () => {
    const { stream, epoch, floor, head } = await evicted('earliest');
    const problem = await refusalOf(stream, cursorOf(epoch, 3));
    assert.deepEqual(
      { ...problem, type: undefined, title: undefined, detail: undefined },
      {
        type: undefined,
        title: undefined,
        detail: undefined,
        status: 410,
        code: 'resume_unavailable',
        reason: 'evicted',
        cursor: cursorOf(epoch, 3),
        epoch,
        floor,
        head,
        earliest: cursorOf(epoch, floor - 1),
      },
    );
    const again = await SseSubscription.open(broker.port, stream, { lastEventId: problem.earliest });
    await again.untilSeq(head);
    assert.deepEqual(again.seqs, range(floor, head));
    again.cut();
  });

  it('4.4 a stream that keeps one event refuses what is gone and takes its head as cursor', async () => {
    const stream = freshStream('one');
    await createStream(broker.port, stream, { retention: { events: 1 } });
    const { epoch } = await publishLines(broker.port, stream, range(1, 9).map(String));
    const { floor } = await stateOf(broker.port, stream);
    assert.ok(floor >= 8);
    assert.equal((await refusalOf(stream, cursorOf(epoch, floor - 2))).reason, 'evicted');
    const subscription = await SseSubscription.open(broker.port, stream, { lastEventId: cursorOf(epoch, 9) });
    await publish(broker.port, stream, 'ten');
    await subscription.untilEvents(1);
    assert.deepEqual(subscription.seqs, [10]);
    subscription.cut();
  });

  it('4.4 what is no cursor is 400 malformed, in the header and in the query', async () => {
    const stream = freshStream('malformed');
    const { epoch } = await publish(broker.port, stream, 'one');
    const malformed = [
      `${epoch}`,
      `${epoch}.`,
      `${epoch}.+1`,
      `${epoch}.-1`,
      `${epoch}.01`,
      `${epoch}.00`,
      `${epoch}.1e3`,
      `${epoch}.0x1`,
      `${epoch}.1.0`,
      `${epoch}.9007199254740992`,
      `${epoch}.99999999999999999999999`,
      `${epoch}.1,2`,
      `${epoch.toUpperCase()}.1`,
      '.1',
      '1',
      'short.1',
      'seventeencharacte.1',
      'Earliest',
      'LATEST',
      'null',
      'undefined',
      `${'a'.repeat(120)}.12345678`,
      'x'.repeat(2_000),
      `${epoch}/1`,
    ];
    for (const text of malformed) {
      for (const options of [{ lastEventId: text }, { cursor: text }]) {
        const subscription = await SseSubscription.ask(broker.port, stream, options);
        const response = await subscription.refusal();
        const problem = assertProblem(response, 400, 'malformed');
        assert.equal(problem.reason, 'malformed', text);
        assert.equal(response.header('cache-control'), 'no-store');
      }
    }
  });

  it('4.4 a malformed header is refused although ?cursor= is good', async () => {
    const stream = freshStream('malformed');
    const { epoch } = await publish(broker.port, stream, 'one');
    const options = { lastEventId: 'nonsense', cursor: cursorOf(epoch, 0) };
    const subscription = await SseSubscription.ask(broker.port, stream, options);
    assertProblem(await subscription.refusal(), 400, 'malformed');
  });

  it('4.5 a cursor for a stream that does not exist is 410 epoch_changed with epoch null, and creates nothing', async () => {
    const stream = freshStream('absent');
    const { reason, epoch } = await refusalOf(stream, cursorOf(OTHER_EPOCH, 5));
    assert.deepEqual([reason, epoch], ['epoch_changed', null]);
    assertProblem(
      await request(broker.port, { path: `/v1/streams/${stream}/state` }),
      404,
      'stream_not_found',
    );
  });

  it('2.3 the cursor of a deleted stream is refused in the same way, and its name stays free', async () => {
    const stream = freshStream('deleted');
    const { epoch } = await publish(broker.port, stream, 'one');
    await deleteStream(broker.port, stream);
    const problem = await refusalOf(stream, cursorOf(epoch, 1));
    assert.deepEqual([problem.reason, problem.epoch], ['epoch_changed', null]);
  });

  it('10 every refusal counts in resume_unavailable by reason, malformed ones too', async () => {
    const { stream, epoch, head } = await evicted('counted');
    const cursors = {
      evicted: cursorOf(epoch, 1),
      ahead_of_head: cursorOf(epoch, head + 1),
      epoch_changed: cursorOf(OTHER_EPOCH, 1),
      malformed: 'nonsense',
    };
    for (const [reason, lastEventId] of Object.entries(cursors)) {
      const before = total(await scrape(broker.port), METRIC.resumeUnavailable, { reason });
      for (let count = 0; count < 3; count++) {
        await (await SseSubscription.ask(broker.port, stream, { lastEventId })).refusal();
      }
      const after = total(await scrape(broker.port), METRIC.resumeUnavailable, { reason });
      assert.equal(after - before, 3, reason);
    }
  });

  it('4.4 a page read from the same cursors is refused in the same way (6)', async () => {
    const { stream, epoch, floor, head } = await evicted('page');
    for (const seq of [0, floor - 2, floor - 1, head, head + 1]) {
      const path = `/v1/streams/${stream}?cursor=${cursorOf(epoch, seq)}`;
      const response = await request(broker.port, { path, headers: { Accept: MEDIA_TYPES.json } });
      const subscription = await SseSubscription.ask(broker.port, stream, {
        lastEventId: cursorOf(epoch, seq),
      });
      assert.equal(response.status, subscription.status, `cursor ${seq} of ${floor}..${head}`);
      if (response.status === 410) {
        assert.deepEqual(response.json(), (await subscription.refusal()).json());
        assert.equal(response.header('cache-control'), 'no-store');
      }
      subscription.cut();
    }
  });
});
