import assert from 'node:assert/strict';
import { GapRules } from '#gapless/conformance/gap-rules.js';

/** The judge of the promise (rules G1 to G7), for tests: a violation is a failed assertion. */
export class GapChecker extends GapRules {
  /** Fails with every violation kept, each with its place. */
  assertClean(): void {
    assert.equal(this.violationCount, 0, this.describeViolations());
  }
}
