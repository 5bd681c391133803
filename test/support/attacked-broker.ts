import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { type SuiteBroker, useBroker } from './broker-process.js';
import { range } from './cursor.js';
import { publish } from './gapless-client.js';
import { request } from './http.js';
import { METRIC } from './metric-names.js';
import { parseMetrics, total } from './prometheus.js';
import { SseSubscription } from './sse-client.js';
import { apiKey, bearer, Files } from './tokens.js';

const files = new Files();
const MALLORY = ['own', 'own-*'];

/** What an attacker has: a key for `own` and all that begins with `own-`. `other` has the event `secret`. */
export const mallory = apiKey('mallory', { publish: MALLORY, subscribe: MALLORY });
const operator = apiKey('operator', { publish: ['*'], subscribe: ['*'], admin: true });
export const asMallory = bearer(mallory.key);
export const asOperator = bearer(operator.key);
const apiKeys = files.write('api.json', JSON.stringify({ apiKeys: [mallory.entry, operator.entry] }));

/**
 * A broker for attackers, with a stream beside that they have nothing to do with. When they are done its subscriber must
 * have been given its events, these only, and in order; and no credential may stand in the log.
 */
export function useAttackedBroker(...flags: string[]): SuiteBroker {
  let witness: SseSubscription;
  // Before the hook that ends the broker.
  after(async () => {
    const seqs = range(1, 50);
    for (const seq of seqs) await publish(broker.port, 'witness', `event ${seq}`, undefined, asOperator);
    await witness.untilEvents(seqs.length);
    assert.deepEqual(witness.seqs, seqs);
    witness.cut();
    const { text } = await request(broker.port, { path: '/metrics', headers: asOperator });
    assert.equal(total(parseMetrics(text), METRIC.seamViolations), 0);
    const log = JSON.stringify(broker.process.log);
    for (const word of [mallory.key, operator.key, 'Bearer', 'eyJ']) assert.ok(!log.includes(word), word);
  });
  const broker = useBroker('--api-keys-file', apiKeys, ...flags);
  before(async () => {
    witness = await SseSubscription.open(broker.port, 'witness', { headers: asOperator });
    await publish(broker.port, 'other', 'secret', undefined, asOperator);
    await publish(broker.port, 'own', 'mine', undefined, asOperator);
  });
  return broker;
}
