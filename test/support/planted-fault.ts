/**
 * Loaded into a broker before its program (`node --import`), in each of its threads: the thread that `PLANTED_FAULT`
 * names dies as it says, on SIGUSR2; one of the replay pool, which sleeps between its reads, as long as there is the
 * file `armed`. The broker knows nothing of it.
 */

import { existsSync } from 'node:fs';
import { BroadcastChannel, isMainThread, MessagePort, parentPort, workerData } from 'node:worker_threads';
import { assert } from '#gapless/assert.js';
import type { Fault, FaultyThread } from './thread-fault.js';

const fault = JSON.parse(process.env.PLANTED_FAULT ?? 'null') as Fault | null;
const channel = new BroadcastChannel('planted-fault');

if (isMainThread) process.on('SIGUSR2', () => channel.postMessage('now'));
else if (fault !== null && threadName() === fault.thread) plant(fault);
// It must not keep a thread alive that would end without it.
(channel as unknown as { unref(): void }).unref();

function plant(fault: Fault): void {
  if (fault.thread !== 'replay') {
    channel.onmessage = () => die(fault);
    return;
  }
  const { armed, within, how } = fault;
  if (how === 'assert') {
    // The last thing that a read does with the bytes that it found.
    const { set } = Uint8Array.prototype;
    Uint8Array.prototype.set = function (this: Uint8Array, ...args: never[]): void {
      assert(!existsSync(armed), 'planted');
      Reflect.apply(set, this, args);
    };
    return;
  }
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function (this: MessagePort, ...args: never[]): void {
    // On its own port it says that it is ready; what it has read goes over another.
    if ((this !== parentPort || within === 'start') && existsSync(armed)) die(fault);
    Reflect.apply(postMessage, this, args);
  };
}

function die({ how }: Fault): void {
  if (how === 'exit') process.exit(7);
  throw new Error('planted');
}

/** By what each kind of thread is started with. */
function threadName(): FaultyThread | null {
  const setup = workerData as Record<string, unknown> | null;
  if (setup?.edge === 1) return 'edge';
  if (setup?.directory === undefined) return null;
  return setup.status === undefined ? 'replay' : 'log';
}
