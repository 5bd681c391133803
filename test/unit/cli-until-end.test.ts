import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { untilEnd } from '#gapless/cli/until-end.js';
import { createLogger } from '#gapless/log.js';

const log = createLogger({ level: 'silent', thread: 'main' });
const never = new Promise<never>(() => undefined);

/** A broker that does as told and notes what it was asked to do. */
function fakeBroker(behaviour: { drain?: Promise<void>; stop?: Promise<void>; failed?: Promise<Error> }) {
  const calls: string[] = [];
  const drain = () => {
    calls.push('drain');
    return behaviour.drain ?? Promise.resolve();
  };
  const stop = () => {
    calls.push('stop');
    return behaviour.stop ?? Promise.resolve();
  };
  return { port: 1, calls, drain, stop, reload: null, failed: behaviour.failed ?? never };
}

/** Signals are emitted here, not sent: they must not reach the process that runs the tests. */
function signal(name: 'SIGTERM' | 'SIGINT'): void {
  process.emit(name, name);
}

beforeEach(() => {
  mock.method(process.stderr, 'write', () => true);
});

afterEach(() => {
  mock.restoreAll();
  mock.timers.reset();
  process.removeAllListeners('SIGTERM').removeAllListeners('SIGINT');
});

test('10 a signal drains the broker and ends well', async () => {
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    const broker = fakeBroker({});
    const ended = untilEnd(broker, log);
    signal(name);
    assert.equal(await ended, 0);
    assert.deepEqual(broker.calls, ['drain']);
    process.removeAllListeners(name);
  }
});

test('10 a second SIGTERM stops a broker that is still draining', async () => {
  const broker = fakeBroker({ drain: never });
  const ended = untilEnd(broker, log);
  signal('SIGTERM');
  signal('SIGTERM');
  assert.equal(await ended, 1);
  assert.deepEqual(broker.calls, ['drain', 'stop']);
});

test('11 one Ctrl-C that arrives twice is one', async () => {
  let finishDraining: () => void = () => undefined;
  const drain = new Promise<void>((resolve) => {
    finishDraining = resolve;
  });
  const broker = fakeBroker({ drain });
  const ended = untilEnd(broker, log);
  signal('SIGINT');
  signal('SIGINT');
  setImmediate(finishDraining);
  assert.equal(await ended, 0);
  assert.deepEqual(broker.calls, ['drain']);
});

test('a broker that fails is stopped, and so is one that cannot drain', async () => {
  const failing = fakeBroker({ failed: Promise.resolve(new Error('a thread died')) });
  assert.equal(await untilEnd(failing, log), 1);
  assert.deepEqual(failing.calls, ['stop']);

  const stuck = fakeBroker({ drain: Promise.reject(new Error('no')) });
  const ended = untilEnd(stuck, log);
  signal('SIGTERM');
  assert.equal(await ended, 1);
  assert.deepEqual(stuck.calls, ['drain', 'stop']);
});

test('a broker that fails and cannot be stopped either does not keep the process', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const broker = fakeBroker({ failed: Promise.resolve(new Error('a thread died')), stop: never });
  const ended = untilEnd(broker, log);
  await new Promise(setImmediate);
  assert.deepEqual(broker.calls, ['stop']);
  mock.timers.tick(2000);
  assert.equal(await ended, 1);
});
