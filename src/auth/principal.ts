import { FULL_GRANT, type Grant } from '../core/grant.js';

/** Who sent a request, as far as we can know. */
export interface Principal {
  /** Subject of the token, or id of the static key; for log lines, and what limits are counted by. */
  readonly id: string;
  readonly grant: Grant;
  /** Unix time, milliseconds, from which on this is nobody any more; Infinity for static keys. */
  readonly expiresAtMs: number;
  /** The key that vouches for it: when that is taken away, so is what was opened with it. */
  readonly keyName: string;
}

/** Everybody, where nobody has to authenticate. */
export const ANYBODY: Principal = {
  id: '',
  grant: FULL_GRANT,
  expiresAtMs: Number.POSITIVE_INFINITY,
  keyName: '',
};

/** What tells somebody from others: tokens without a subject are told apart by their key only. */
export function identityOf({ id, keyName }: Principal): string {
  return id === '' ? keyName : id;
}
