import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CheckoutDetails } from '#operating/operations/checkout.schema.ts';
import { standingOf } from './standing.ts';

const payment = { number: 1, amount: 100_00, reduced: 0, due_on: '2026-12-15' };
const paid = {
  ...{ currency: 'ZAR', locale: 'en-ZA', status: 'successful', amount: 100_00, collected: 100_00 },
  ...{ refunded: 0, cancelled: 0, disputes: [], plan: [{ ...payment, status: 'collected' }] },
};
const lost = { status: 'lost', amount: 100_00 };

const standings: [checkout: object, words: string][] = [
  [{ plan: [], status: 'received' }, 'The shopper has not paid yet.'],
  [{ plan: [], status: 'expired' }, 'Nothing was collected.'],
  [{}, 'R 100,00 of R 100,00 collected.'],
  [
    { collected: 25_00, refunded: 25_00, cancelled: 75_00 },
    'R 25,00 of R 100,00 collected. R 100,00 refunded.',
  ],
  [
    { disputes: [lost, { ...lost, status: 'won' }] },
    'R 100,00 of R 100,00 collected. R 100,00 lost in a dispute.',
  ],
  [
    {
      disputes: [
        { ...lost, amount: 25_00 },
        { ...lost, amount: 50_00 },
      ],
    },
    'R 100,00 of R 100,00 collected. R 75,00 lost in disputes.',
  ],
  [
    { collected: 0, plan: [{ ...payment, status: 'overdue' }] },
    'R 0,00 of R 100,00 collected. Payment 1 has been overdue since 15 Dec 2026.',
  ],
  [
    { collected: 0, cancelled: 40_00, plan: [{ ...payment, reduced: 40_00, status: 'scheduled' }] },
    'R 0,00 of R 100,00 collected. R 40,00 refunded. Next: R 60,00 on 15 Dec 2026.',
  ],
];
for (const [changes, words] of standings) {
  test(`the standing of a checkout: ${words}`, () => {
    const checkout = { ...paid, ...changes } as unknown as CheckoutDetails;
    assert.equal(standingOf(checkout).replaceAll('\u00a0', ' '), words);
  });
}
