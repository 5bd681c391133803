import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  bytes,
  type EventOfMany,
  GaplessClient,
  json,
  type StreamEvent,
  type StreamState,
} from '#gapless/client/client.js';

/** Fails to compile where the two are not the same type. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type EventOf<S> = S extends AsyncIterable<infer E> ? E : never;

interface Order {
  readonly id: number;
}

it('the type of an event is that of what decodes it', () => {
  const client = new GaplessClient({ url: 'http://127.0.0.1:1' });
  const texts = client.subscribe('s');
  const orders = client.subscribe('s', { decode: json<Order> });
  const raw = client.subscribe('s', { cursor: 'earliest', decode: bytes });
  const lengths = client.subscribe('s', { decode: ({ data }) => data.length });
  const many = client.subscribeMany(['a', 'b']);
  const orderedMany = client.subscribeMany(['a', 'b'], { decode: json<Order>, cursor: { a: 'earliest' } });
  const alike = client.subscribePrefix('a', { onDeleted: (stream) => stream.length });
  const orderedAlike = client.subscribePrefix('a', { decode: json<Order>, cursor: 'earliest' });
  const named = client.subscribeMany(['a'], { decode: ({ stream }) => ({ stream }) });
  const same: [
    Same<EventOf<typeof texts>, StreamEvent<string>>,
    Same<EventOf<typeof orders>, StreamEvent<Order>>,
    Same<EventOf<typeof raw>, StreamEvent<Uint8Array>>,
    Same<EventOf<typeof lengths>, StreamEvent<number>>,
    Same<EventOf<typeof many>, EventOfMany<string>>,
    Same<EventOf<typeof orderedMany>, EventOfMany<Order>>,
    Same<EventOf<typeof alike>, EventOfMany<string>>,
    Same<EventOf<typeof orderedAlike>, EventOfMany<Order>>,
    Same<EventOf<typeof named>, EventOfMany<{ stream: string }>>,
    Same<Awaited<ReturnType<typeof client.state>>, StreamState | null>,
  ] = [true, true, true, true, true, true, true, true, true, true];
  assert.ok(same.every(Boolean));
  // @ts-expect-error: undefined is no data
  client.publish('..', undefined).catch(() => undefined);
  // @ts-expect-error: there is no such option
  client.subscribe('s', { cursors: 'earliest' });
  // @ts-expect-error: several streams are a list of names
  assert.throws(() => client.subscribeMany('s'), TypeError);
  // @ts-expect-error: of all the streams there is one cursor
  client.subscribePrefix('s', { cursor: { s: 'earliest' } });
  // @ts-expect-error: a cursor is text
  client.subscribeMany(['s'], { cursor: { s: 1 } });
});
