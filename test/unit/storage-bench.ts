import { afterEach, beforeEach } from 'node:test';
import type { StreamConfig } from '#gapless/core/retention.js';
import { configOf, EPOCH, type LogStage, runOf } from './storage-stage.js';

export const NOW_MS = 1_750_000_000_000;
export const READ_BYTES = 64 * 1024;

const RETENTION = { events: 0, bytes: 0, ageMs: 0 };

/** A log for each test of a suite, whatever is behind it. */
export interface LogBench {
  /** The log as it was opened last. */
  readonly stage: LogStage;
  create(retention?: Partial<typeof RETENTION>, overflow?: StreamConfig['overflow']): number;
  append(id: number, firstSeq: number, sizes: readonly number[], nowMs?: number): void;
  reopen(): Promise<void>;
}

/** Within a `describe`. */
export function useLog(open: () => LogStage): LogBench {
  let stage: LogStage;
  beforeEach(() => {
    stage = open();
  });
  afterEach(async () => {
    await stage.dispose();
  });
  return {
    get stage() {
      return stage;
    },
    create(retention = {}, overflow = 'evict') {
      const id = stage.log.nextId();
      stage.log.create({ id, name: `stream-${id}`, epoch: EPOCH, config: configOf(retention, overflow) });
      return id;
    },
    append(id, firstSeq, sizes, nowMs = NOW_MS) {
      stage.log.append(id, runOf(id, firstSeq, sizes), nowMs);
    },
    async reopen() {
      stage = await stage.reopen();
    },
  };
}
