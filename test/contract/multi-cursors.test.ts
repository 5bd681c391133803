import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { assertProblem, createStream, freshStream, publishLines } from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

const SEVERAL = '';

describeOnEdges('4.10 a cursor of each stream', [], (broker) => {
  async function filled(count: number): Promise<{ streams: string[]; epochs: string[] }> {
    const streams = range(1, count).map((index) => freshStream(`own-${index}`));
    const epochs: string[] = [];
    for (const stream of streams) {
      epochs.push((await publishLines(broker.port, stream, range(1, 5).map(String))).epoch);
    }
    return { streams, epochs };
  }

  const asking = (cursors: readonly string[]) => ({
    query: cursors.map((cursor) => `cursor=${cursor}`).join('&'),
  });

  function seqsOf({ events }: SseSubscription, stream: string): number[] {
    const own = events.map(({ data }) => JSON.parse(data) as { stream: string; id: string });
    return own.filter((event) => event.stream === stream).map(({ id }) => seqOf(id));
  }

  function refuse(streams: readonly string[], cursors: readonly string[]): Promise<HttpResponse> {
    const query = [
      ...streams.map((name) => `stream=${name}`),
      ...cursors.map((cursor) => `cursor=${cursor}`),
    ];
    const headers = { Accept: 'text/event-stream' };
    return request(broker.port, { path: `/v1/streams?${query.join('&')}`, headers });
  }

  it('4.10 each begins at its own, a word too, and the id resumes them all from there on (I2)', async () => {
    const { streams, epochs } = await filled(3);
    const [a, b, c] = streams as [string, string, string];
    const cursors = [cursorOf(epochs[0] as string, 3), 'earliest', 'latest'];
    const first = await SseSubscription.open(broker.port, SEVERAL, { streams, ...asking(cursors) });
    await first.untilEvents(7);
    assert.deepEqual([seqsOf(first, a), seqsOf(first, b), seqsOf(first, c)], [[4, 5], range(1, 5), []]);
    first.cut();
    await publishLines(broker.port, c, ['6']);
    // An EventSource repeats its URL: the header wins over the cursors in it.
    const headers = { 'Last-Event-ID': first.events.at(-1)?.id ?? '' };
    const second = await SseSubscription.open(broker.port, SEVERAL, { streams, headers, ...asking(cursors) });
    await second.untilEvents(1);
    assert.deepEqual([seqsOf(second, a), seqsOf(second, b), seqsOf(second, c)], [[], [], [6]]);
    second.cut();
  });

  it('4.10 a single stream may have one too', async () => {
    const { streams, epochs } = await filled(1);
    const cursor = cursorOf(epochs[0] as string, 4);
    const one = await SseSubscription.open(broker.port, SEVERAL, { streams, cursor });
    await one.untilEvents(1);
    assert.deepEqual(seqsOf(one, streams[0] as string), [5]);
    one.cut();
  });

  it('4.10 only those whose own cursor does not work are refused, each with its reason', async () => {
    const { streams, epochs } = await filled(4);
    const small = freshStream('small');
    await createStream(broker.port, small, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, small, range(1, 20).map(String));
    const all = [...streams, small];
    const cursors = [
      cursorOf(epochs[0] as string, 2),
      cursorOf(epochs[1] as string, 6),
      'zzzzzzzzzz.3',
      'latest',
      cursorOf(epoch, 1),
    ];
    const problem = assertProblem(await refuse(all, cursors), 410, 'resume_unavailable');
    const told = (problem as unknown as { streams: { stream: string; reason: string; cursor: string }[] })
      .streams;
    assert.deepEqual(
      told.map(({ stream, reason, cursor }) => [stream, reason, cursor]),
      [
        [streams[1], 'ahead_of_head', cursors[1]],
        [streams[2], 'epoch_changed', cursors[2]],
        [small, 'evicted', cursors[4]],
      ],
    );
    assert.deepEqual([problem.reason, problem.cursor], ['ahead_of_head', cursors[1]]);
  });

  it('4.10 one that cannot be read is malformed, and too few or too many are an invalid query', async () => {
    const { streams, epochs } = await filled(3);
    const good = cursorOf(epochs[0] as string, 1);
    assertProblem(await refuse(streams, [good, 'x', good]), 400, 'malformed');
    assertProblem(await refuse(streams, [good, '', good]), 400, 'malformed');
    assertProblem(await refuse(streams, [good]), 400, 'malformed');
    assertProblem(await refuse(streams, [good, good]), 400, 'invalid_query');
    assertProblem(await refuse(streams, [good, good, good, good]), 400, 'invalid_query');
  });

  it('4.10 a stream that is not there is made where it begins with a word, and refused where it has a cursor', async () => {
    const { streams, epochs } = await filled(1);
    const missing = freshStream('missing');
    const good = cursorOf(epochs[0] as string, 5);
    assertProblem(await refuse([...streams, missing], [good, 'zzzzzzzzzz.3']), 410, 'resume_unavailable');
    assert.equal((await request(broker.port, { path: `/v1/streams/${missing}/state` })).status, 404);
    const both = await SseSubscription.open(broker.port, SEVERAL, {
      streams: [...streams, missing],
      ...asking([good, 'earliest']),
    });
    await publishLines(broker.port, missing, ['first']);
    await both.untilEvents(1);
    assert.deepEqual(seqsOf(both, missing), [1]);
    both.cut();
  });
});
