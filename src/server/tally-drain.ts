/**
 * Makes rates of the sums over callers: each sum leaks away as fast as the settings allow it to grow.
 */

import type { Config } from '../config/schema.js';
import { BYTES_PER_UNIT, Tally, TallyOf } from '../ring/tally.js';

const MINUTE_SECONDS = 60;

/** @returns a function that takes from each sum what leaks away in so many milliseconds. */
export function tallyDrain(config: Config, tallies: SharedArrayBuffer): (ms: number) => void {
  const rates = [
    [TallyOf.publishedEvents, config.publishEventsRate],
    [TallyOf.publishedByteUnits, config.publishBytesRate / BYTES_PER_UNIT],
    [TallyOf.replayedByteUnits, config.addressReplayBytesMax / BYTES_PER_UNIT / MINUTE_SECONDS],
  ] as const;
  const limited = rates
    .filter(([, perSecond]) => perSecond > 0)
    .map(([index, perSecond]) => ({ tally: new Tally(tallies, index), perSecond, owed: 0 }));
  return (ms) => {
    for (const each of limited) {
      // Whole numbers only: what is over waits for the next time, so that a low rate is exact as well.
      each.owed += (each.perSecond * ms) / 1000;
      const amount = Math.floor(each.owed);
      each.owed -= amount;
      if (amount > 0) each.tally.drain(amount);
    }
  };
}
