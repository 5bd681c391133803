import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANYBODY } from '#gapless/auth/principal.js';
import { RequestError } from '#gapless/errors.js';
import { Activity } from '#gapless/transport/console/activity.js';

test('10 of a storm so much is kept as is handed over at once, and the rest is counted', () => {
  const activity = new Activity(() => 1_700_000_000_000.4);
  const about = { stream: 's', principal: ANYBODY };
  for (let i = 0; i < 250; i++) activity.refused(about, new RequestError('rate_limited'), `r-${i}`);
  const batch = activity.take();
  assert.deepEqual([batch?.happenings.length, batch?.missed], [100, 150]);
  assert.deepEqual(batch?.happenings.at(-1), {
    at: 1_700_000_000_000,
    outcome: 'refused',
    stream: 's',
    principal: '',
    code: 'rate_limited',
    request: 'r-99',
  });
  assert.equal(activity.take(), null);
  activity.refused(about, new RequestError('rate_limited'), 'r-250');
  assert.equal(activity.take()?.missed, 0, 'what was counted is not counted again');
});

test('10 what strangers name is cut to the length of a name', () => {
  const activity = new Activity(() => 0);
  const about = { stream: 'x'.repeat(100_000), principal: { ...ANYBODY, id: 'y'.repeat(8000) } };
  activity.refused(about, new RequestError('invalid_stream_name'), 'r-1');
  const [happening] = activity.take()?.happenings ?? [];
  assert.deepEqual([happening?.stream.length, happening?.principal.length], [200, 200]);
});
