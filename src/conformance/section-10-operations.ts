import type { Check, Section } from './check.js';
import { expect, expectStatus, skip } from './expect.js';
import { filledStream } from './filled-stream.js';
import type { Target } from './target.js';

const REFUSALS = 'gapless_resume_unavailable_total';

/** How many refusals with this reason the metrics have. */
async function refusals(target: Target, reason: string): Promise<number> {
  const answer = await target.get('/metrics');
  if (answer.status === 404 || answer.status === 401 || answer.status === 403)
    return skip(`the metrics are ${answer.status} here; needs them at /metrics`);
  expectStatus(answer, 200, '/metrics');
  const ofReason = new RegExp(`^${REFUSALS}\\{[^}]*reason="${reason}"[^}]*\\} ([0-9.e+]+)$`);
  return answer.text.split('\n').reduce((sum, line) => sum + Number(ofReason.exec(line)?.[1] ?? 0), 0);
}

const checks: Check[] = [
  {
    section: '10',
    what: '/healthz and /readyz are 200 while the server takes subscriptions',
    async run(target) {
      for (const path of ['/healthz', '/readyz']) expectStatus(await target.get(path), 200, path);
    },
  },
  {
    section: '10',
    what: 'every refusal to resume counts by its reason, the malformed too',
    async run(target) {
      const { name, epoch } = await filledStream(target, 1);
      for (const [reason, cursor] of [
        ['ahead_of_head', `${epoch}.5`],
        ['epoch_changed', 'abcdefghij.1'],
        ['malformed', 'nonsense'],
      ] as const) {
        const before = await refusals(target, reason);
        await (await target.ask(name, { lastEventId: cursor })).refusal();
        const after = await refusals(target, reason);
        expect(after > before, `${REFUSALS} with ${reason} was ${before} before a refusal, and is ${after}`);
      }
    },
  },
];

export const operations: Section = { number: '10', title: 'Operations', checks };
