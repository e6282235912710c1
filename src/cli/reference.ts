import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { unique } from '#operating/operations/owner.sql.ts';
import { listOfCheckouts } from '#operating/search/search.sql.ts';
import { type HitKind, search } from '#operating/search/search.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Connection, viewerOf } from './connect.ts';

/** The kinds of rows that a command finds by any reference that a list prints. */
export type Named = Extract<HitKind, 'checkout' | 'refund' | 'callback' | 'dispute' | 'payout'>;

const tables = { refund: 'refund_requests', callback: 'callbacks', dispute: 'disputes' } as const;
const hitsMax = 20;

/**
 * Returns the ID that a reference stands for: an ID or its beginning, an order number, a reference
 * of a payout or of the gateway. If no row matches, the text is returned unchanged, and the command
 * reports that it found nothing.
 */
export async function idOf(connection: Connection, kind: Named, text: string): Promise<string> {
  if (isUuid(text)) return text;
  const { scope } = viewerOf(connection);
  const hits = await search(connection, scope, text, hitsMax);
  // A complete match takes precedence over values that only begin with the text.
  const whole = hits.filter(({ matched }) => matched !== 'beginning');
  const found = whole.length > 0 ? whole : hits;
  const own = found.filter((hit) => hit.kind === kind).map(({ id }) => id);
  const checkouts = found.flatMap(({ checkout_id }) => checkout_id ?? []);
  const ids =
    own.length > 0 || kind === 'checkout' || kind === 'payout'
      ? own
      : await reading(connection, (db) => listOfCheckouts(db, scope, tables[kind], checkouts));
  const [only, ...others] = unique(kind === 'checkout' ? checkouts : ids);
  if (only === undefined) return text;
  if (others.length === 0) return only;
  throw new OperatorError(
    `"${text}" means more than one ${kind}. Give one of these:\n${[only, ...others].map((id) => `  ${id}`).join('\n')}`,
  );
}

export async function mustFindMerchant(
  { database, clock }: Pick<Connection, 'database' | 'clock'>,
  id: string,
): Promise<Merchant> {
  const merchant = isUuid(id) ? await findMerchant(database.db, clock, id) : null;
  if (!merchant) throw new OperatorError(`There is no merchant ${id}.`);
  return merchant;
}
