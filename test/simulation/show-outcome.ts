import { showOptions } from './options.js';
import type { Outcome } from './simulate.js';

const VERDICTS_SHOWN_MAX = 5;

/** A seed that failed: what was wrong, what it drew, and how to see it again. */
export function showFailure({ seed, verdicts, options }: Outcome): string {
  const shown = verdicts.slice(0, VERDICTS_SHOWN_MAX);
  const more = verdicts.length - shown.length;
  return [
    `seed ${seed} failed: ${shown.join('\n  ')}${more > 0 ? `\n  and ${more} more` : ''}`,
    `  drew ${showOptions(options)}`,
    `  repeat with: npm run simulate -- --seeds ${seed}`,
  ].join('\n');
}
