/** The pure modules of money, each with the cheapest tests that notice a wrong line. */
export const modules: Record<string, string[]> = {
  'src/platform/shared/fees.ts': ['src/record/ledger/settlement.test.ts'],
  'src/record/ledger/settlement.ts': ['src/record/ledger/settlement.test.ts'],
  'src/purchases/payouts/payout.ts': ['src/purchases/payouts/payout.test.ts'],
  'src/purchases/instalments/instalment.ts': ['src/purchases/instalments/instalment.test.ts'],
  'src/purchases/refunds/refund.ts': ['src/purchases/refunds/refund.test.ts'],
  'src/platform/http/pagination.ts': ['src/platform/http/pagination.test.ts'],
  'src/platform/signing/signature.ts': ['src/platform/signing/signature.test.ts'],
  'src/operating/people/permission.ts': ['src/operating/people/permission.test.ts'],
  'src/purchases/callbacks/delivery/choose-deliveries.ts': [
    'src/purchases/callbacks/delivery/choose-deliveries.test.ts',
  ],
};
