import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DisputeStatus } from '#purchases/disputes/dispute.ts';
import { acceptedOf, acceptTexts, endOf } from './dispute-texts.ts';

const show = (cents: number) => `R ${cents / 100}`;

for (const [status, withdrawn, end] of [
  ['won', 0, 'The bank decided for the merchant and returned the money.'],
  ['won', 900, 'The bank decided for the merchant. The gateway has not returned R 9 yet.'],
  ['lost', 0, 'The bank decided for the cardholder. The gateway has not withdrawn the money yet.'],
  ['lost', 900, 'The cardholder keeps R 9.'],
  ['closed', 0, null],
] as const) {
  test(`the page of a dispute that was ${status} says who has the money: ${withdrawn}`, () => {
    assert.equal(endOf({ status, withdrawn }, show), end);
  });
}

for (const [before, title, status, withdrawn, said] of [
  ['inquiry', 'Close the inquiry', 'closed', 0, 'The inquiry is closed.'],
  [
    'needs_response',
    'Accept the loss',
    'lost',
    900,
    'The dispute is lost. The cardholder keeps R 9.',
  ],
] satisfies [DisputeStatus, string, DisputeStatus, number, string][]) {
  test(`whoever gives up a dispute that is ${before} reads what that means`, () => {
    assert.equal(acceptTexts({ status: before, amount: 900 }, show).title, title);
    assert.equal(acceptedOf({ status, withdrawn }, show), said);
  });
}
