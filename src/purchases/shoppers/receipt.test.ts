import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Language } from '#platform/shared/language.ts';
import type { Plan, PlanPayment } from './plan.ts';
import { describeReceipt } from './receipt.ts';

const territory = {
  ...{ code: 'ZA', currency: 'ZAR', time_zone: 'Africa/Johannesburg' },
  ...{ locale: 'en-ZA', payment_min: 1_000 },
};

/** The names and values of a receipt for a payment with this dispute. */
function factsOf(dispute: PlanPayment['dispute'], language: Language): string[] {
  const payment: PlanPayment = {
    ...{ number: 1, due_on: '2026-11-15', amount: 50_000, status: 'paid', dispute },
    ...{ reduced: 0, refunded: 0, paid_at: null, late: null },
  };
  const { rows } = describeReceipt(payment, { payments: [payment] } as Plan, {
    checkout: { id: 'id', client_reference_id: 'order-1', amount: 50_000, line_items: [] },
    merchant: {
      ...{ name: 'Bean There', territory },
      ...{ contact: null, address: null, vat_number: null, logo: null },
    },
    ...{ card: null, language },
  });
  return rows.map((row) => row.join(': '));
}

for (const [language, open, lost] of [
  ['en', 'Dispute: Disputed at the bank', 'Dispute: Returned by the bank'],
  ['af', 'Geskil: Word by die bank betwis', 'Geskil: Deur die bank teruggegee'],
  ['zu', 'Ingxabano: Iphikiswa ebhange', 'Ingxabano: Ibuyiswe yibhange'],
] as const) {
  test(`a receipt says in ${language} that the payment is disputed or was taken back`, () => {
    const added = (dispute: 'open' | 'lost') => {
      const plain = factsOf(null, language);
      return factsOf(dispute, language).filter((fact) => !plain.includes(fact));
    };
    assert.deepEqual([added('open'), added('lost')], [[open], [lost]]);
  });
}
