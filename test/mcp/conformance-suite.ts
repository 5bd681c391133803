import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { peerFile } from './peers.js';

export type Status = 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED';

export interface SuiteCheck {
  id: string;
  status: Status;
  errorMessage?: string;
}

/** The checks of each scenario of the official suite, pending ones too, as it judges the server at a URL. */
export async function runConformanceSuite(url: string): Promise<Map<string, SuiteCheck[]>> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-conformance-'));
  try {
    const words = [peerFile('conformance'), 'server', '--url', url, '-o', folder, '--suite', 'all'];
    // Its exit code says only whether a check failed.
    await once(spawn(process.execPath, words, { stdio: 'ignore' }), 'close');
    const checks = new Map<string, SuiteCheck[]>();
    for (const name of await readdir(folder)) {
      const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
      checks.set(
        scenario,
        JSON.parse(await readFile(join(folder, name, 'checks.json'), 'utf8')) as SuiteCheck[],
      );
    }
    return checks;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What a scenario came to: the worst that one of its checks found. */
export function verdictOf(checks: readonly SuiteCheck[] = []): string {
  const bad = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
  return bad.length === 0
    ? 'passed'
    : bad.map(({ id, status, errorMessage = '' }) => `${status} ${id}: ${errorMessage}`).join('; ');
}
