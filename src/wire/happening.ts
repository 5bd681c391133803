/** What happened to somebody who came to the broker, as people who look on are told of it (contract 10). */

/** `live`, `ring` and `log` as in contract 4.4; `overtaken` is a refusal of 4.6. */
export type Outcome = 'live' | 'ring' | 'log' | 'refused' | 'overtaken';

/** One thing that happened; what it is not about is absent. */
export interface Happening {
  /** Unix time, milliseconds. */
  readonly at: number;
  readonly outcome: Outcome;
  /** Empty where it was about none. */
  readonly stream: string;
  /** Who it was: the subject of a token or the id of a key; empty where that is not known. */
  readonly principal: string;
  readonly cursor?: string;
  readonly epoch?: string | null;
  readonly floor?: number | null;
  readonly head?: number | null;
  readonly earliest?: string | null;
  /** Of a refusal: its code (contract 8) and, where there is one, its reason and the number that the client was given. */
  readonly code?: string;
  readonly reason?: string;
  readonly request?: string;
}

export interface NumberedHappening extends Happening {
  readonly number: number;
}

/** The answer of GET /v1/activity. */
export interface ActivityAnswer {
  /** The oldest first. */
  readonly activity: readonly NumberedHappening[];
  /** The cursor to read on from. */
  readonly next: string;
  /** What happened after the cursor and is not here; null where that is not known. */
  readonly missed: number | null;
}
