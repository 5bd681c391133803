/** What happened, in a sentence. Pure. */

import { ERRORS } from '../../errors.js';
import type { Happening } from '../../wire/happening.js';
import { count, counted } from './format.js';

export type Tone = 'good' | 'refused';

export interface Words {
  /** A word or two. */
  readonly title: string;
  readonly text: string;
  readonly tone: Tone;
}

export function wordsOf(happening: Happening): Words {
  switch (happening.outcome) {
    case 'live':
      return { title: 'Resumed', text: 'nothing was missed', tone: 'good' };
    case 'ring':
      return { title: 'Resumed', text: `${behind(happening)} from memory`, tone: 'good' };
    case 'log':
      return { title: 'Resumed', text: `${behind(happening)} from the durable log`, tone: 'good' };
    case 'overtaken':
      return { title: 'Overtaken', text: evicted(happening), tone: 'refused' };
    case 'refused':
      return { title: 'Refused', text: refused(happening), tone: 'refused' };
  }
}

function behind(happening: Happening): string {
  return counted(Math.max(0, (happening.head ?? 0) - seqOf(happening.cursor)), 'event');
}

/** Why a token was not accepted (contract 9.1). */
const TOKEN_FAULTS: Readonly<Record<string, string>> = {
  missing: 'no token was sent',
  scheme: 'what was sent is no bearer token',
  malformed: 'what was sent is not a token',
  unknown_key: 'nobody here knows the key that signed the token',
  signature: 'the signature of the token is wrong',
  expired: 'the token has expired',
  not_yet_valid: 'the token is not valid yet',
  issuer: 'the token is of another issuer',
  audience: 'the token is for somebody else',
  claims: 'the token lacks a claim, or has one of the wrong shape',
  unknown_api_key: 'nobody here knows this key',
};

/** What is wrong with a token, by the reason of its refusal. */
export function tokenFault(reason: unknown): string {
  return TOKEN_FAULTS[String(reason)] ?? `the token is not accepted (${String(reason)})`;
}

function refused(happening: Happening): string {
  const { code = '', reason, head } = happening;
  if (code === 'unauthorized') return tokenFault(reason);
  switch (reason) {
    case 'evicted':
      return evicted(happening);
    case 'epoch_changed':
      return happening.epoch === null
        ? 'there is no such stream'
        : 'its cursor is of an earlier stream of this name';
    case 'cursor_unknown':
      return 'the server does not keep its cursor, or not any more';
    case 'ahead_of_head':
      return `it asked after event ${count(seqOf(happening.cursor))}, and the newest is ${count(head ?? 0)}`;
    case 'malformed':
      return 'what it sent is not a cursor';
  }
  const title = code in ERRORS ? ERRORS[code as keyof typeof ERRORS].title : code;
  const said = title.charAt(0).toLowerCase() + title.slice(1);
  return reason === undefined ? said : `${said} (${reason})`;
}

function evicted({ cursor, floor }: Happening): string {
  return `event ${count(seqOf(cursor) + 1)} is gone, the earliest kept is ${count(floor ?? 0)}`;
}

/** The seq of a cursor; that of several streams together (contract 4.10) has none to show. */
function seqOf(cursor: string | undefined): number {
  const seq = Number(cursor?.slice(cursor.indexOf('.') + 1));
  return Number.isSafeInteger(seq) ? seq : 0;
}
