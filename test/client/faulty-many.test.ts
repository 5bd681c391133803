import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GaplessClient, type SubscriptionStatus } from '#gapless/client/client.js';
import { answers, type Script, ScriptedServer, streams, streamsAndEnds } from './scripted-server.js';

const EPOCHS = { a: 'aaaaaaaa01', b: 'bbbbbbbb01' } as const;
type Name = keyof typeof EPOCHS;

const position = (id: string): string => `id: ${id}`;
/** An event of a stream; the id of the whole says how many came of each. */
const event = (stream: Name, seq: number, id: string): string => {
  const data = { stream, id: `${EPOCHS[stream]}.${seq}`, type: 'message', data: `${stream}${seq}` };
  return `id: ${id}\ndata: ${JSON.stringify(data)}`;
};
const closed = (stream: Name, seq: number): string =>
  `event: stream_closed\ndata: {"stream":"${stream}","cursor":"${EPOCHS[stream]}.${seq}"}`;
const ENDS = [closed('a', 2), closed('b', 2)];
const WHOLE = [
  position('m00'),
  event('a', 1, 'm10'),
  event('b', 1, 'm11'),
  event('b', 2, 'm12'),
  event('a', 2, 'm22'),
  ...ENDS,
];

describe('a subscription of the client to several streams, with a server that misbehaves', () => {
  async function follow(
    scripts: readonly Script[],
    options: { attemptsMax?: number; idleTimeoutMs?: number } = {},
  ): Promise<{ seen: string[]; asked: unknown[]; errors: string[]; thrown: unknown }> {
    const server = await ScriptedServer.start(...scripts);
    const seen: string[] = [];
    const errors: string[] = [];
    const onStatus = (status: SubscriptionStatus): void => {
      if (status.state === 'waiting') errors.push(status.error.code);
    };
    const cursor = { a: `${EPOCHS.a}.0`, b: `${EPOCHS.b}.0` };
    let thrown: unknown = null;
    try {
      const events = new GaplessClient({ url: server.url }).subscribeMany(['a', 'b'], {
        cursor,
        retryMs: 1,
        onStatus,
        ...options,
      });
      for await (const { data } of events) seen.push(data);
    } catch (error) {
      thrown = error;
    } finally {
      await server.stop();
    }
    const asked = server.requests.map(({ headers }) => headers['last-event-id']);
    return { seen, asked, errors, thrown };
  }

  const ALL = ['a1', 'b1', 'b2', 'a2'];

  for (const [what, wrong] of [
    ['an event of one stream is missing', [position('m00'), event('a', 1, 'm10'), event('b', 2, 'm12')]],
    ['an event comes twice', [position('m00'), event('a', 1, 'm10'), event('a', 1, 'm10')]],
    [
      'an event is of another epoch',
      [position('m00'), event('a', 1, 'm10'), event('b', 1, 'm11').replace(EPOCHS.b, 'zzzzzzzz99')],
    ],
    [
      'an event is of a stream that nobody asked for',
      [position('m00'), event('a', 1, 'm10'), event('b', 1, 'm11').replace('"b"', '"c"')],
    ],
    [
      'an event has no id',
      [position('m00'), event('a', 1, 'm10'), event('b', 1, 'm11').replace('id: m11\n', '')],
    ],
    [
      'a stream ends before its last event',
      [position('m00'), event('a', 1, 'm10'), closed('b', 2), event('b', 1, 'm11')],
    ],
  ] as const) {
    it(`${what}: it is not handed over, and another connection begins before it`, async () => {
      const right = streamsAndEnds([position('m10'), ...WHOLE.slice(2)]);
      const { seen, asked, errors, thrown } = await follow([streams(...wrong), right]);
      assert.equal(thrown, null);
      assert.deepEqual([seen, errors, asked], [ALL, ['not_contiguous'], [undefined, 'm10']]);
    });
  }

  it('throws when every connection brings what does not follow', async () => {
    const { seen, thrown, asked } = await follow([streams(position('m00'), event('b', 2, 'm02'))]);
    assert.deepEqual([seen, (thrown as { code: string }).code, asked.length], [[], 'not_contiguous', 3]);
  });

  it('comes back after refusals that may pass, after silence, and after answers that break at any byte', async () => {
    const { seen, errors } = await follow(
      [
        answers(503, { code: 'draining', title: 'x' }, { 'Retry-After': '0' }),
        (_request, response) => response.socket?.destroy(),
        streams(position('m00'), event('a', 1, 'm10')),
        (_request, response) => {
          response.writeHead(200, { 'Content-Type': 'text/event-stream' });
          response.write(`${position('m10')}\n\n${event('b', 1, 'm11').slice(0, 30)}`, () =>
            response.socket?.resetAndDestroy(),
          );
        },
        streamsAndEnds([position('m10'), ...WHOLE.slice(2)]),
      ],
      { idleTimeoutMs: 1_000 },
    );
    assert.deepEqual(seen, ALL);
    assert.deepEqual(errors, ['draining', 'unreachable', 'unreachable', 'unreachable']);
  });

  it('throws refusals that cannot pass at once, and others after so many attempts', async () => {
    const refused = await follow([answers(403, { code: 'forbidden', title: 'x' })]);
    assert.deepEqual([(refused.thrown as { code: string }).code, refused.asked.length], ['forbidden', 1]);
    const tired = await follow([answers(503, null)], { attemptsMax: 3 });
    assert.deepEqual([(tired.thrown as { status: number }).status, tired.asked.length], [503, 3]);
  });
});
