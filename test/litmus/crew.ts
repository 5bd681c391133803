import { Worker } from 'node:worker_threads';
import { withDeadline } from '../support/deadline.js';

/** Messages of one worker, in order: those that nobody has asked for yet, and who asks for one that has not come. */
class Inbox<Report> {
  readonly #messages: Report[] = [];
  readonly #askers: ((message: Report) => void)[] = [];

  put(message: Report): void {
    const asker = this.#askers.shift();
    if (asker === undefined) this.#messages.push(message);
    else asker(message);
  }

  take(): Promise<Report> {
    const message = this.#messages.shift();
    if (message !== undefined) return Promise.resolve(message);
    return new Promise((resolve) => this.#askers.push(resolve));
  }
}

/** Worker threads that take orders and report. A thread that throws fails the test. */
export class Crew<Order, Report> {
  readonly #workers: readonly Worker[];
  readonly #inboxes: readonly Inbox<Report>[];
  readonly #failed: Promise<never>;

  constructor(entry: URL, data: readonly unknown[]) {
    this.#workers = data.map((workerData) => new Worker(entry, { workerData }));
    this.#inboxes = data.map(() => new Inbox());
    this.#failed = new Promise((_resolve, reject) => {
      for (const worker of this.#workers) worker.once('error', reject);
    });
    // Whoever waits for a report learns of it; that nobody waits is no reason to end the process.
    this.#failed.catch(() => {});
    for (const [index, worker] of this.#workers.entries()) {
      worker.on('message', (report) => (this.#inboxes[index] as Inbox<Report>).put(report));
    }
  }

  order(index: number, order: Order): void {
    (this.#workers[index] as Worker).postMessage(order);
  }

  orderAll(order: Order): void {
    for (const worker of this.#workers) worker.postMessage(order);
  }

  /** The next message of a worker. */
  report(index: number, what: string): Promise<Report> {
    return withDeadline(what, Promise.race([(this.#inboxes[index] as Inbox<Report>).take(), this.#failed]));
  }

  /** The next message of each. */
  reports(what: string): Promise<Report[]> {
    return Promise.all(this.#workers.map((_, index) => this.report(index, what)));
  }

  async end(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
