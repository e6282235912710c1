import { send } from '#platform/database/compile-once.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertAccountFees, insertFees, insertPostings } from './posting.sql.ts';
import { type AccountFee, type GatewayFee, movements } from './posting.ts';

type PostDeps = { database: Database; clock: Clock; log: Logger; random: Random };

/**
 * Posts the gateway's fees that are not posted yet, and returns how many. Each transaction of the
 * gateway counts once. The fees do not affect the merchants' books, because a merchant's own terms
 * decide what it pays us.
 */
export async function postFees(deps: PostDeps, fees: GatewayFee[]): Promise<number> {
  if (fees.length === 0) return 0;
  return await transaction(deps, async ({ db }) => {
    const fresh = await insertFees(db, fees);
    if (fresh.length === 0) return 0;
    const postings = insertPostings(
      fresh.map(({ merchant_id, checkout_id, fee, currency, at }) => {
        const kind = fee > 0 ? 'gateway_fee' : 'gateway_fee_returned';
        const of = { merchant_id, checkout_id, currency, at, ...movements[kind] };
        const about = { instalment: null, refund_id: null, dispute_id: null };
        return { ...of, ...about, id: deps.random.uuid(), kind, amount: Math.abs(fee) } as const;
      }),
    );
    await send(db, postings);
    return fresh.length;
  });
}

/**
 * Posts fees that the gateway charged without a payment (decision 0083), each once. Returns how
 * many were new.
 */
export async function postAccountFees(deps: PostDeps, fees: AccountFee[]): Promise<number> {
  if (fees.length === 0) return 0;
  return await transaction(deps, ({ db }) => insertAccountFees(db, fees));
}
