import type { ActivityStore } from './activity-store.js';
import type { Broker } from './broker.js';

/** Where one was in the list of streams, for who comes back to it. */
export interface Place {
  filter: string;
  /** The stream that was looked at last. */
  stream: string | null;
}

/** What the views of the console share. */
export interface App {
  readonly broker: Broker;
  readonly activity: ActivityStore;
  readonly place: Place;
  /** The broker has answered: what was said of it not answering is taken back. */
  answered(): void;
  /**
   * Says what went wrong with a request: asks for a token, or says that the broker is not reached.
   * @returns whether the same request is worth another try.
   */
  failed(error: unknown): boolean;
  /** Whether what failed was that the token does not give the right to something. */
  isForbidden(error: unknown): boolean;
}

/** Builds what a view shows, and keeps it up to date until the signal. */
export type View = (app: App, signal: AbortSignal) => HTMLElement;

/** The place of a stream in the console. Names need no encoding (contract 2.4). */
export function hrefOf(stream: string): string {
  return `#/streams/${stream}`;
}
