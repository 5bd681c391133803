import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { MAIN_FILE } from '../support/paths.js';

/** What `gapless conformance --json` prints. */
export interface Report {
  passed: number;
  failed: number;
  skipped: number;
  results: {
    section: string;
    what: string;
    outcome: 'passed' | 'failed' | 'skipped';
    reason: string | null;
  }[];
}

export interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the command as a user does. */
export function runCommand(...flags: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN_FILE, 'conformance', ...flags], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

/** Runs the suite, or some sections of it, against a port of the loopback. */
export async function runConformance(
  port: number,
  ...flags: string[]
): Promise<{ code: number; report: Report }> {
  const { code, stdout, stderr } = await runCommand('--url', `http://127.0.0.1:${port}`, '--json', ...flags);
  assert.equal(stderr, '');
  return { code, report: JSON.parse(stdout) as Report };
}
