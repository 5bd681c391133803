import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearestName } from '#gapless/config/nearest-name.js';

const known = ['--port', '--host', '--memory', '--retry-ms'];

test('a letter too many, too few, wrong or swapped still finds the name', () => {
  assert.equal(nearestName('--portt', known), '--port');
  assert.equal(nearestName('--ost', known), '--host');
  assert.equal(nearestName('--hort', known), '--port');
  assert.equal(nearestName('--memroy', known), '--memory');
  assert.equal(nearestName('--retryMs', known), '--retry-ms');
});

test('what is like none of the names finds nothing', () => {
  assert.equal(nearestName('--xyz', known), undefined);
  assert.equal(nearestName('', known), undefined);
  assert.equal(nearestName('--port'.repeat(1000), known), undefined);
  assert.equal(nearestName('--port', []), undefined);
});
