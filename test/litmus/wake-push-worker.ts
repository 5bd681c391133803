import { parentPort, workerData } from 'node:worker_threads';
import { Rings, type RingsBuffers } from '#gapless/ring/rings.js';
import { Wakes } from '#gapless/ring/wake-queue.js';
import { startTogether } from './start-together.js';

export interface PushWorkerData {
  readonly index: number;
  readonly publishers: number;
  readonly rings: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  readonly start: SharedArrayBuffer;
}

export interface PushOrder {
  readonly round: number;
}

const { index, publishers, rings: buffers, wakes: wakesBuffer, start } = workerData as PushWorkerData;
const rings = new Rings(buffers);
const wakes = new Wakes(wakesBuffer, rings);

/** Announces every slot, each publisher beginning at another one: most are announced by all at about the same time. */
parentPort?.on('message', ({ round }: PushOrder) => {
  startTogether(start, publishers * round);
  for (let i = 0; i < rings.slotCount; i++) wakes.announce((i + index) % rings.slotCount, -1);
  parentPort?.postMessage(null);
});
