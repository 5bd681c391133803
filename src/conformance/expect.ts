import type { Answer } from './answer.js';

/** The server did something else than the contract says. */
export class Mismatch extends Error {
  override readonly name = 'Mismatch';
}

/** A check that cannot be made against this server as it is set up; the message says what it would take. */
export class Skipped extends Error {
  override readonly name = 'Skipped';
}

export function skip(reason: string): never {
  throw new Skipped(reason);
}

export function expect(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Mismatch(what);
}

/** Compares what JSON can say, member order aside from that of arrays. */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  const [got, wanted] = [canonical(actual), canonical(expected)];
  if (got !== wanted) throw new Mismatch(`${what}: expected ${shorten(wanted)}, got ${shorten(got)}`);
}

export function expectStatus(answer: Answer, status: number, what: string): void {
  if (answer.status !== status)
    throw new Mismatch(`${what}: expected ${status}, got ${answer.status} ${shorten(answer.text)}`);
}

/** A problem document of contract 8. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly [member: string]: unknown;
}

/** Fails unless the answer is the refusal `code`, as contract 8 writes one. */
export function expectProblem(answer: Answer, status: number, code: string, what: string): Problem {
  expectStatus(answer, status, what);
  const type = answer.header('content-type') ?? 'no Content-Type';
  expect(/^application\/problem\+json\s*(;|$)/.test(type), `${what}: the refusal is ${type}`);
  const problem = answer.json() as Problem;
  expectEqual(problem.code, code, `${what}: the code`);
  expectEqual(problem.status, status, `${what}: the status in the body`);
  expectEqual(problem.type, `urn:gapless:error:${code}`, `${what}: the type`);
  expect(typeof problem.title === 'string' && problem.title !== '', `${what}: there is no title`);
  expectEqual(answer.header('cache-control'), 'no-store', `${what}: Cache-Control`);
  return problem;
}

export interface Position {
  readonly epoch: string;
  readonly seq: number;
}

/** Reads a cursor to the letter of contract 1. */
export function expectCursor(text: unknown, what: string): Position {
  const match = typeof text === 'string' ? /^([a-z0-9]{8,16})\.(0|[1-9][0-9]{0,15})$/.exec(text) : null;
  const seq = Number(match?.[2]);
  expect(match?.[1] !== undefined && Number.isSafeInteger(seq), `${what}: ${text} is no cursor`);
  return { epoch: match[1], seq };
}

function canonical(value: unknown): string {
  const sorted = JSON.stringify(value, (_key, member: unknown) =>
    isPlain(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
  return sorted ?? 'nothing';
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shorten(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
