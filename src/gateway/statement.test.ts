import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../test/support/any-character.ts';
import type { PlanPlace } from './gateway.ts';
import { paymentDescription, statementSuffix } from './statement.ts';

const second = { instalments: [2], number_of_payments: 3 };
const onceOff = { instalments: [1], number_of_payments: 1 };

test('a statement names the merchant and the payment, within the room that the prefix leaves', () => {
  for (const [prefix, name, place, expected] of [
    ['TRANCHE', 'Bean There', second, 'Bean T 2 of 3'],
    ['TR', 'Bean There', second, 'Bean There 2 of 3'],
    ['TR', 'Bean There', onceOff, 'Bean There'],
    ['TRANCHE', 'Kaffeekännchen', onceOff, 'Kaffeekannche'],
    ['TR', 'Thabo\'s "Best" <Coffee>', onceOff, 'Thabos Best Coffee'],
    [null, 'Bean There', second, 'Bea 2 of 3'],
    [null, 'Bean There', { instalments: [12], number_of_payments: 120 }, '12 of 120'],
    ['TRANCHE', 'Bean There', { instalments: [3, 2, 4], number_of_payments: 6 }, 'Bean 2-4 of 6'],
    [null, 'Bean There', { instalments: [9, 99], number_of_payments: 120 }, 'Bean There'],
    ['TRANCHE', '1871', onceOff, 'Payment'],
    ['TRANCHE', '咖啡', onceOff, 'Payment'],
    ['TRANCHE', '咖啡', second, '2 of 3'],
  ] as [string | null, string, PlanPlace, string][]) {
    assert.equal(statementSuffix(prefix, name, place), expected);
  }
});

test('whatever the name, the complete descriptor is one that the schemes accept', () => {
  const place = fc
    .tuple(fc.integer({ min: 1, max: 120 }), fc.integer({ min: 1, max: 120 }))
    .map(([one, other]) => ({
      instalments: [1, Math.min(one, other)],
      number_of_payments: Math.max(one, other),
    }));
  const prefix = fc.constantFrom('TR', 'TRANCHE', 'TENLETTERS', null);
  fc.assert(
    fc.property(
      fc.string({ unit: anyCharacter, maxLength: 255 }),
      place,
      prefix,
      (name, at, given) => {
        const suffix = statementSuffix(given, name, at);
        const complete = `${given ?? 'TENLETTERS'}* ${suffix}`;
        assert.ok(complete.length >= 5 && complete.length <= 22, complete);
        assert.match(suffix, /[a-z]/i);
        assert.match(suffix, /^[\x20-\x7e]+$/);
        assert.doesNotMatch(suffix, /[<>\\'"*]/);
        assert.equal(suffix.trim(), suffix);
      },
    ),
    { numRuns: 1_000 },
  );
});

test('a description says which payment it is', () => {
  assert.equal(paymentDescription('Bean There', second), 'Payment 2 of 3 to Bean There');
  assert.equal(paymentDescription('Bean There', onceOff), 'Payment to Bean There');
});
