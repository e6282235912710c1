import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RefundDetails } from '#operating/operations/refund.schema.ts';
import { outcomeOf } from './review.ts';

const refund = { amount: 60_000, currency: 'ZAR', locale: 'en-ZA' } as RefundDetails;

const outcomes: [answer: Partial<RefundDetails>, words: string][] = [
  [{ view: 'review', status: 'requested' }, 'now needs a second approval.'],
  [{ view: 'complete', status: 'complete' }, 'is complete.'],
  [
    { view: 'failed', status: 'failed', reason: 'The card is closed.' },
    'failed. The card is closed.',
  ],
  [{ view: 'approved', status: 'pending', waits_for: null }, 'has started.'],
  [{ view: 'approved', status: 'requested', waits_for: null }, 'will start soon.'],
  [{ view: 'approved', status: 'requested', waits_for: 2 }, 'waits: payment 2 is being collected.'],
];
for (const [answer, words] of outcomes) {
  test(`the outcome of an action on a refund: it ${words}`, () => {
    const shown = outcomeOf({ ...refund, ...answer }).replaceAll('\u00a0', ' ');
    assert.equal(shown, `The refund of R 600,00 ${words}`);
  });
}
