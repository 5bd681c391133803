/** A metric whose value is asked for on each scrape. */

import { Gauge, Counter as PromCounter, type Registry } from 'prom-client';

/** Registers a counter, if it is named like one, or else a gauge. `value` is asked on each scrape. */
export function registerLiveValue(registry: Registry, name: string, help: string, value: () => number): void {
  const Kind = name.endsWith('_total') ? PromCounter : Gauge;
  new Kind({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(value());
    },
  });
}
