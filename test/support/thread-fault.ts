import { fileURLToPath } from 'node:url';
import { BrokerProcess } from './broker-process.js';

/** The second edge; the log thread; the threads of the replay pool. */
export type FaultyThread = Fault['thread'];

/** `throw`: an error that nobody catches. `exit`: the thread is gone without a word. */
export type HowItDies = 'throw' | 'exit';

export type Fault =
  | { readonly thread: 'edge' | 'log'; readonly how: HowItDies }
  | {
      readonly thread: 'replay';
      /** `assert`: an invariant does not hold, within a read. */
      readonly how: HowItDies | 'assert';
      /** Within a read, or already while it starts. */
      readonly within: 'read' | 'start';
      /** A file: as long as it is there, threads die. */
      readonly armed: string;
    };

const PRELOAD_FILE = fileURLToPath(new URL('./planted-fault.js', import.meta.url));

/** A broker one of whose threads dies when it is told to (planted-fault.ts). */
export function startWithFault(fault: Fault, ...flags: string[]): Promise<BrokerProcess> {
  const nodeFlags = ['--import', PRELOAD_FILE];
  return BrokerProcess.launch({ flags, nodeFlags, env: { PLANTED_FAULT: JSON.stringify(fault) } });
}
