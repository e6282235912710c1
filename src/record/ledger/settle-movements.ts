import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { type NewEntry, postEntries, withoutFee } from './post-entries.ts';
import type { Movement } from './post-movements.ts';
import type { MovementKind } from './posting.ts';
import { findTerms, listPositions, listSales } from './settlement.sql.ts';
import {
  type Amounts,
  type EntryKind,
  refundAmounts,
  reversalAmounts,
  type SaleState,
  saleAmounts,
  type Terms,
} from './settlement.ts';

type Effect = 'sale' | 'refund' | 'refund_reversed' | 'dispute' | 'dispute_reversed';

/** The effect of a movement on the merchant's books. All other movements have none. */
const effects: Partial<Record<MovementKind, Effect>> = {
  captured: 'sale',
  collected: 'sale',
  refunded: 'refund',
  cancelled: 'refund',
  returned: 'refund_reversed',
  restored: 'refund_reversed',
  withdrawn: 'dispute',
  reinstated: 'dispute_reversed',
};

/**
 * Writes what movements change in a merchant's books, in their transaction and after they were
 * posted. All movements are of one merchant. A merchant without terms has no such books.
 */
export async function settleMovements(
  deps: { random: Random },
  db: Handle,
  at: Timestamp,
  list: Movement[],
): Promise<void> {
  const movements = list.filter(({ kind }) => effects[kind] !== undefined);
  const merchant_id = movements[0]?.merchant_id;
  if (merchant_id === undefined) return;
  const terms = await findTerms(db, merchant_id, at);
  if (terms === null) return;
  const checkout_ids = [...new Set(movements.map(({ checkout_id }) => checkout_id))];
  const sales = await listSales(db, merchant_id, checkout_ids);
  const entries: NewEntry[] = [];
  const write = (
    { checkout_id, refund_id, dispute_id }: Movement,
    kind: EntryKind,
    instalment: number | null,
    amounts: Amounts,
  ) =>
    entries.push({
      ...amounts,
      kind,
      checkout_id,
      instalment,
      refund_id: refund_id ?? null,
      dispute_id: dispute_id ?? null,
    });

  const wholes = await listWholeSales(db, terms, movements, sales);
  for (const movement of movements) {
    const { checkout_id, amount, instalment = null } = movement;
    const kind = effects[movement.kind] as Effect;
    const own = sales.filter((sale) => sale.checkout_id === checkout_id);
    const sale = own.find((one) => one.instalment === null || one.instalment === instalment);
    if (kind === 'sale') {
      // The first payment that is collected decides how the checkout is funded.
      const funding = own[0]
        ? own[0].instalment === null
          ? 'whole'
          : 'as_collected'
        : terms.funding;
      if (funding === 'as_collected') {
        const amounts = saleAmounts(terms, amount, instalment === 1);
        write(movement, kind, instalment, amounts);
        sales.push(newSale(checkout_id, instalment, amounts));
        continue;
      }
      const gross = wholes.get(checkout_id);
      if (own.length > 0 || gross === undefined) continue;
      const amounts = saleAmounts(terms, gross, true);
      write(movement, kind, null, amounts);
      sales.push(newSale(checkout_id, null, amounts));
      continue;
    }
    // Nothing was owed for it yet, so that there is nothing to take back.
    if (!sale) continue;
    if (kind === 'dispute' || kind === 'dispute_reversed') {
      write(movement, kind, sale.instalment, withoutFee(kind === 'dispute' ? -amount : amount));
      continue;
    }
    const change = kind === 'refund' ? refundAmounts : reversalAmounts;
    const amounts = change(terms, sale, amount);
    write(movement, kind, sale.instalment, amounts);
    sale.refunded -= amounts.gross;
    sale.fee_returned -= amounts.fee;
    sale.vat_returned -= amounts.vat;
  }
  const { currency } = movements[0] as Movement;
  await postEntries(deps, db, { merchant_id, currency, at }, entries);
}

function newSale(
  checkout_id: string,
  instalment: number | null,
  { gross, fee, vat }: Amounts,
): SaleState {
  const none = { refunded: 0, fee_returned: 0, vat_returned: 0 };
  return { checkout_id, instalment, gross, fee, vat, ...none };
}

/**
 * The amount owed for orders whose first payment is collected now: the part that refunds have left.
 * An order that was partly collected before the terms began was settled elsewhere.
 */
async function listWholeSales(
  db: Handle,
  { funding, merchant_id }: Terms,
  movements: Movement[],
  sales: SaleState[],
): Promise<Map<string, number>> {
  const collected = new Map<string, number>();
  for (const { kind, checkout_id, amount } of movements) {
    if (effects[kind] !== 'sale' || funding !== 'whole') continue;
    if (sales.some((sale) => sale.checkout_id === checkout_id)) continue;
    collected.set(checkout_id, (collected.get(checkout_id) ?? 0) + amount);
  }
  if (collected.size === 0) return new Map();
  const positions = await listPositions(db, merchant_id, [...collected.keys()]);
  return new Map(
    positions.flatMap(({ checkout_id, remaining, ever_collected }) =>
      ever_collected === collected.get(checkout_id) ? [[checkout_id, remaining]] : [],
    ),
  );
}
