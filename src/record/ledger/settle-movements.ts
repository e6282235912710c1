import assert from 'node:assert/strict';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type Amounts, saleAmounts } from '#platform/shared/fees.ts';
import type { Random } from '#platform/shared/random.ts';
import { entriesOf, type NewEntry, postEntries, withoutFee } from './post-entries.ts';
import type { Movement } from './post-movements.ts';
import type { MovementKind } from './posting.ts';
import { findBooks, listPositions } from './settlement.sql.ts';
import {
  type EntryKind,
  newSale,
  refundSale,
  reverseRefund,
  type SaleState,
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

export const hasEffect = ({ kind }: Pick<Movement, 'kind'>) => effects[kind] !== undefined;

type Books = {
  terms: Terms;
  /** The sales of the checkouts, including those that are being written. */
  sales: SaleState[];
  /** The amount owed for a whole order whose first payment is being collected, by checkout. */
  wholes: Map<string, number>;
  entries: NewEntry[];
};

/**
 * Writes the effects of movements into a merchant's books, in the same transaction, after the
 * movements are posted. All movements belong to one merchant. A merchant without terms has no such
 * books.
 */
export async function settleMovements(
  deps: { random: Random },
  db: Handle,
  at: Timestamp,
  list: Movement[],
): Promise<void> {
  const movements = list.filter(hasEffect);
  const [first] = movements;
  if (first === undefined) return;
  const { merchant_id, currency } = first;
  const checkout_ids = [...new Set(movements.map(({ checkout_id }) => checkout_id))];
  const { terms, sales } = await findBooks(db, { merchant_id, checkout_ids, at });
  if (terms === null) return;
  const wholes = await listWholeSales(db, terms, movements, sales);
  const entries = enterMovements(terms, sales, wholes, movements);
  await postEntries(deps, db, { merchant_id, currency, at }, entries);
}

/**
 * The effects of movements that reverse a sale, or undo such a reversal, to be written with the
 * movements. Null if there are none, or if the merchant has no terms. The books are read
 * beforehand, under the lock of the checkout.
 */
export function changesOf(
  deps: { random: Random },
  at: Timestamp,
  { terms, sales }: { terms: Terms | null; sales: SaleState[] },
  list: Movement[],
) {
  const movements = list.filter(hasEffect);
  assert(!movements.some(({ kind }) => effects[kind] === 'sale'));
  const [first] = movements;
  if (first === undefined || terms === null) return null;
  const { merchant_id, currency } = first;
  const entries = enterMovements(terms, sales, new Map(), movements);
  return entriesOf(deps, { merchant_id, currency, at }, entries);
}

function enterMovements(
  terms: Terms,
  sales: SaleState[],
  wholes: Books['wholes'],
  movements: Movement[],
): NewEntry[] {
  const books: Books = { terms, sales, wholes, entries: [] };
  for (const movement of movements) {
    const effect = effects[movement.kind] as Effect;
    if (effect === 'sale') enterSale(books, movement);
    else enterChange(books, movement, effect);
  }
  return books.entries;
}

function enterSale(books: Books, movement: Movement): void {
  const { terms, sales, wholes } = books;
  const { checkout_id, amount, instalment = null } = movement;
  const earlier = sales.find((sale) => sale.checkout_id === checkout_id);
  if (fundingOf(terms, earlier) === 'as_collected') {
    const amounts = saleAmounts(terms, amount, instalment === 1);
    enter(books, movement, 'sale', instalment, amounts);
    sales.push(newSale({ checkout_id, instalment }, amounts));
    return;
  }
  const gross = wholes.get(checkout_id);
  if (earlier !== undefined || gross === undefined) return;
  const amounts = saleAmounts(terms, gross, true);
  enter(books, movement, 'sale', null, amounts);
  sales.push(newSale({ checkout_id, instalment: null }, amounts));
}

/** The first collected payment decides how the checkout is funded. */
function fundingOf(terms: Terms, earlier: SaleState | undefined): Terms['funding'] {
  if (earlier === undefined) return terms.funding;
  return earlier.instalment === null ? 'whole' : 'as_collected';
}

/** A refund of a sale or a dispute about it, or the reversal of either. */
function enterChange(books: Books, movement: Movement, effect: Exclude<Effect, 'sale'>): void {
  const { checkout_id, amount, instalment = null, refund_id = null } = movement;
  const sale = books.sales.find(
    (one) =>
      one.checkout_id === checkout_id && (one.instalment === null || one.instalment === instalment),
  );
  // Nothing was owed for this checkout yet, so there is nothing to deduct.
  if (!sale) return;
  if (effect === 'dispute' || effect === 'dispute_reversed') {
    const gross = effect === 'dispute' ? -amount : amount;
    enter(books, movement, effect, sale.instalment, withoutFee(gross));
    return;
  }
  const amounts =
    effect === 'refund'
      ? refundSale(books.terms, sale, refund_id, amount)
      : reverseRefund(sale, refund_id, amount);
  enter(books, movement, effect, sale.instalment, amounts);
}

function enter(
  { entries }: Books,
  { checkout_id, refund_id, dispute_id }: Movement,
  kind: EntryKind,
  instalment: number | null,
  amounts: Amounts,
): void {
  entries.push({
    ...amounts,
    kind,
    checkout_id,
    instalment,
    refund_id: refund_id ?? null,
    dispute_id: dispute_id ?? null,
  });
}

/**
 * The amount owed for an order whose first payment is being collected, by checkout: what refunds
 * have left of it. An order that was partly collected before the terms began is not settled by the
 * service.
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
