import type { Logger } from '../log.js';
import type { RunningBroker } from '../server/start-broker.js';
import { EXIT_FAILED, EXIT_OK } from './exit-code.js';
import { watchEndSignals } from './signals.js';
import { printError } from './terminal.js';

/** For a broker that is to end at once, so that a thread which no longer answers cannot keep it alive. */
const STOP_MS_MAX = 2000;

/**
 * Lets the broker run until a signal or a failure ends it, and gives the exit code (contract 10, 11). The
 * first signal drains; a second one does not wait for that.
 */
export async function untilEnd(broker: RunningBroker, log: Logger): Promise<number> {
  watchReloads(broker, log);
  const failed = Promise.race([broker.failed, nextUncaughtError()]);
  const signals = watchEndSignals();

  const reason = await Promise.race([signals.first, failed]);
  if (reason instanceof Error) return fail(broker, reason, log);

  log.info({ signal: reason }, 'draining');
  const drained = broker.drain().then(() => 'drained' as const, asError);
  const end = await Promise.race([drained, signals.second, failed]);
  if (end instanceof Error) return fail(broker, end, log);
  if (end === 'drained') {
    log.info('stopped');
    return EXIT_OK;
  }
  printError(`${end} while draining, stopped before all subscribers were sent away`);
  await stopSoon(broker);
  return EXIT_FAILED;
}

/**
 * SIGHUP: what is wrong is logged, and the broker goes on with what it has. Where there is nothing to read again the
 * signal ends the process as ever, for then it says that the terminal is gone.
 */
function watchReloads({ reload }: RunningBroker, log: Logger): void {
  if (reload === null) return;
  let last = Promise.resolve();
  process.on('SIGHUP', () => {
    last = last.then(reload).then(
      () => log.info('reloaded'),
      (error: Error) => log.error({ reason: error.message }, 'not reloaded'),
    );
  });
}

async function fail(broker: RunningBroker, err: Error, log: Logger): Promise<number> {
  log.fatal({ err }, 'failed');
  await stopSoon(broker);
  return EXIT_FAILED;
}

/** Settles when the broker is closed, or cannot be, or takes too long: the process ends next in any case. */
async function stopSoon(broker: RunningBroker): Promise<void> {
  await Promise.race([
    broker.stop().catch(() => undefined),
    new Promise((resolve) => setTimeout(resolve, STOP_MS_MAX)),
  ]);
}

/**
 * A broken invariant in this thread. The process must end, but with its sockets closed: a thread that is torn
 * down with open ones aborts it, and what is seen then is the abort and not the reason. A second error ends
 * it all the same.
 */
function nextUncaughtError(): Promise<Error> {
  return new Promise((resolve) => process.once('uncaughtException', (thrown) => resolve(asError(thrown))));
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
