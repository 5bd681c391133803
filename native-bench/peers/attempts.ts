import { setTimeout as sleep } from 'node:timers/promises';
import { LoadError } from '../load-client.js';

const TRIES_MAX = 5;

/** What the load client says when not everything comes that was published. */
const LOSS = /: gap: |waiting for the last deliveries: not within|catching up: not within/;

/** Another server gives no number, which is no fault of this broker. The message says what it did, for people. */
export class NoNumber extends Error {}

/**
 * The tries of one server at one load, over all rounds. When it loses an event or refuses a connection it is tried again;
 * one that does so in all tries of a measurement is left alone from then on.
 */
export class Attempts {
  #tries = 0;
  #losses = 0;
  #failures = 0;
  #isHopeless = false;

  /**
   * @param restMs what the server gets before it is tried again
   * @throws NoNumber
   */
  async measure<T>(attempt: () => Promise<T>, restMs: number): Promise<T> {
    for (let tries = 0; !this.#isHopeless && tries < TRIES_MAX; tries++) {
      if (tries > 0) await sleep(restMs);
      try {
        this.#tries++;
        return await attempt();
      } catch (error) {
        if (!(error instanceof LoadError)) throw error;
        this.#failures++;
        if (LOSS.test(error.message)) this.#losses++;
        process.stderr.write(`no number: ${error.message}\n`);
      }
    }
    this.#isHopeless = true;
    const what = this.#losses === this.#failures ? 'lost events' : 'failed';
    throw new NoNumber(`${what} in ${this.#failures} of ${this.#tries} tries`);
  }
}
