import type { Gates } from './gates.js';

/** A tool whose progress and result say which call they are of, and where they belong in it. */
export interface CountArguments {
  label: string;
  steps: number;
  /** Waits at its gate, `<label>`, after so many steps. */
  holdAfter?: number | undefined;
  /** Bytes of padding in each progress message. */
  padding?: number | undefined;
}

export type ProgressParams = {
  progressToken: string | number;
  progress: number;
  total: number;
  message: string;
};

export type Notify = (notification: {
  method: 'notifications/progress';
  params: ProgressParams;
}) => Promise<void>;

/** Sends `steps` progress notifications; those between two waits are on their way at once. */
export async function count(
  { label, steps, holdAfter, padding = 0 }: CountArguments,
  { token, notify, gates }: { token: string | number | undefined; notify: Notify; gates: Gates },
): Promise<{ content: { type: 'text'; text: string }[] }> {
  const step = async (n: number): Promise<void> => {
    if (token === undefined) return;
    const message = progressText(label, n, padding);
    await notify({
      method: 'notifications/progress',
      params: { progressToken: token, progress: n, total: steps, message },
    });
  };
  const upTo = async (first: number, last: number): Promise<void> => {
    const sent: Promise<void>[] = [];
    for (let n = first; n <= last; n++) sent.push(step(n));
    await Promise.all(sent);
  };
  if (holdAfter !== undefined) {
    await upTo(1, holdAfter);
    await gates.pass(label);
  }
  await upTo((holdAfter ?? 0) + 1, steps);
  return { content: [{ type: 'text', text: resultText(label, steps) }] };
}

export function progressText(label: string, n: number, padding = 0): string {
  return `${label} ${n}${'.'.repeat(padding)}`;
}

export function resultText(label: string, steps: number): string {
  return `${label} counted to ${steps}`;
}
