import { NoNumber } from './peers/attempts.js';
import type { Sample, Scenario } from './scenarios/scenario.js';

const BAR_CELLS = 24;
const NAME_WIDTH = 18;

/** How far a bench is: a bar that stays on its line in a terminal, and a line for each measurement everywhere. */
export class Progress {
  readonly #total: number;
  readonly #out: NodeJS.WriteStream;
  #done = 0;

  constructor(total: number, out: NodeJS.WriteStream) {
    this.#total = total;
    this.#out = out;
  }

  measured({ name, unit }: Scenario, outcome: Sample | NoNumber, round: number): void {
    this.#done++;
    const text =
      outcome instanceof NoNumber
        ? outcome.message
        : `${Math.round(outcome.value).toLocaleString('en')} ${unit}`;
    this.#clear();
    this.#out.write(`round ${round}  ${name.padEnd(NAME_WIDTH)}  ${text}\n`);
    if (this.#out.isTTY) this.#out.write(this.#bar());
  }

  end(): void {
    this.#clear();
  }

  #bar(): string {
    const cells = Math.round((BAR_CELLS * this.#done) / Math.max(1, this.#total));
    return `[${'#'.repeat(cells).padEnd(BAR_CELLS, '.')}] ${this.#done} of ${this.#total}`;
  }

  #clear(): void {
    if (this.#out.isTTY) this.#out.write('\r\x1b[2K');
  }
}
