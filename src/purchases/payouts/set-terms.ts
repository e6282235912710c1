import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { writeTerms } from '#record/ledger/post-entries.ts';
import { findTermsOn } from '#record/ledger/settlement.sql.ts';
import { explainBadTerms, type Terms } from '#record/ledger/settlement.ts';
import { beginStatements } from './make-monthly-statements.ts';
import { readCalendar } from './make-payouts.ts';
import { insertPayoutDay } from './payout.sql.ts';
import { nextPayoutAt } from './payout.ts';

export type WantedTerms = Omit<Terms, 'merchant_id' | 'from_on' | 'created_at'> & {
  /** A local date. Null means today. */
  from_on: string | null;
};

/**
 * Sets what a merchant pays for the service from a given date. The first terms begin the merchant's
 * settlement. Earlier entries keep their fees.
 */
export async function setTerms(
  deps: OperatorDeps,
  operator: string,
  merchant_id: string,
  wanted: WantedTerms,
): Promise<Terms> {
  const problem = explainBadTerms(wanted);
  if (problem !== null) throw new OperatorError(problem);
  const id = merchant_id.toLowerCase();
  return await operate(deps, operator, 'merchants fee', async (db) => {
    const merchant = isUuid(id) ? await findMerchant(db, deps.clock, id) : null;
    if (!merchant) throw unknownMerchant(merchant_id);
    const now = merchant.now();
    const from_on = wanted.from_on ?? merchant.localDate(now).toString();
    const terms: Terms = { ...wanted, merchant_id: id, from_on, created_at: timestamp(now) };
    const earlier = await findTermsOn(db, id, from_on);
    await writeTerms(db, terms);
    const next = await firstPayoutAt(db, merchant, now);
    await insertPayoutDay(db, id, timestamp(next));
    await beginStatements(db, merchant, now);
    // The terms for that date before this action, if any.
    const details = { ...shown(terms), before: earlier ? shown(earlier) : null };
    return { subject_id: id, details, result: terms };
  });
}

const shown = ({ merchant_id: _, created_at: __, ...terms }: Terms) => terms;

async function firstPayoutAt(
  db: Parameters<typeof readCalendar>[0],
  merchant: Merchant,
  now: Temporal.Instant,
): Promise<Temporal.Instant> {
  return nextPayoutAt(await readCalendar(db, merchant, now), merchant.localDate(now));
}

const unknownMerchant = (id: string) =>
  new OperatorError(`There is no merchant ${id}. \`tranche merchants list\` lists them.`);
