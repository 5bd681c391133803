import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { SortedNames } from '#gapless/broker/sorted-names.js';

const name = fc.string({ unit: fc.constantFrom('A', 'a', 'b', '~', '-'), minLength: 1, maxLength: 4 });
const change = fc.record({ name, isAsked: fc.boolean(), prefix: fc.option(name), after: fc.option(name) });

it('2.2 names come in order, those that came and went since the last list too', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const model = new Set<string>();
      const names = new SortedNames(() => model);
      for (const { name, isAsked, prefix, after } of changes) {
        if (model.delete(name)) names.removed(name);
        else {
          model.add(name);
          names.added(name);
        }
        if (!isAsked) continue;
        const wanted = [...model].filter((each) => each.startsWith(prefix ?? '') && each > (after ?? ''));
        assert.deepEqual([...names.from(prefix ?? '', after ?? '')], wanted.sort());
      }
    }),
  );
});
