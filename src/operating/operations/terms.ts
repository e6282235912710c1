import { reading } from '#platform/database/transaction.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { listTerms } from '#record/ledger/settlement.sql.ts';
import type { Terms } from '#record/ledger/settlement.ts';
import { defineAction } from './action.ts';
import { IdParams } from './list.schema.ts';
import { mustSeeMerchant } from './merchants.ts';
import { SetTerms, TermsRow } from './terms.schema.ts';
import { BadInput, type Viewer } from './viewer.ts';

/** A merchant's terms, the newest first: those to come, those in force, and earlier ones. */
export async function readTerms({ deps }: Viewer, merchant_id: string) {
  const terms = await reading(deps, (db) => listTerms(db, merchant_id));
  return terms.map(presentTerms);
}

const presentTerms = ({ from_on, ...terms }: Terms) => ({ ...terms, from: from_on });

const byDefault = {
  funding: 'whole',
  refund_fee: 'kept',
  reserve_basis_points: 0,
  reserve_days: 0,
} as const;

export const termsActions = {
  set: defineAction({
    url: '/api/merchants/:id/terms',
    permission: 'fees.set',
    fresh: true,
    schema: { params: IdParams, body: SetTerms, response: TermsRow },
    async run(viewer: Viewer, { params, body }) {
      const { id } = await mustSeeMerchant(viewer, params.id);
      const { from = null, ...wanted } = body;
      if (from !== null && !isDate(from)) throw new BadInput('from', 'is not a date');
      const terms = await setTerms(viewer.deps, viewer.operator, id, {
        ...byDefault,
        ...wanted,
        from_on: from,
      });
      return () => presentTerms(terms);
    },
  }),
};

function isDate(text: string): boolean {
  try {
    return Temporal.PlainDate.from(text, { overflow: 'reject' }).toString() === text;
  } catch {
    return false;
  }
}
