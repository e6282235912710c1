import { type Words, words } from '#platform/shared/words/words.ts';
import type { EntryKind } from '#record/ledger/settlement.ts';

/** The names of the kinds of lines in statements, in each language. */
export const kindTexts = {
  sale: 'kind_sale',
  refund: 'kind_refund',
  refund_reversed: 'kind_refund_reversed',
  dispute: 'kind_dispute',
  dispute_reversed: 'kind_dispute_reversed',
  dispute_fee: 'kind_dispute_fee',
  reserve: 'kind_reserve',
  reserve_released: 'kind_reserve_released',
  paid_out: 'kind_paid_out',
  payout_returned: 'kind_payout_returned',
} as const satisfies Record<EntryKind, keyof Words['statement']>;

/** The English name of a kind of line, for places where everything is in English. */
export const lineName = (kind: EntryKind) => words.en.statement[kindTexts[kind]];
