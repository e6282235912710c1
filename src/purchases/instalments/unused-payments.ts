import type { PaymentState } from '#gateway/gateway.ts';
import type { Handle } from '#platform/database/database.ts';
import { listPaidElsewhere } from './collection.sql.ts';

/**
 * Leaves out captured payments that already pay for another attempt or collection than the one with
 * this id. Whatever the gateway says of such a payment, it pays for nothing more.
 */
export async function leaveOutUsed<State extends PaymentState>(
  db: Handle,
  row: { merchant_id: string; id: string; instalments: number[] },
  states: State[],
): Promise<State[]> {
  const captured = states.filter(({ outcome }) => outcome === 'captured');
  const refs = captured.flatMap(({ payment_ref }) => (payment_ref === null ? [] : [payment_ref]));
  // Usually no payment was captured: most payments are looked up after a decline.
  if (refs.length === 0) return states;
  const used = new Set(await listPaidElsewhere(db, row, refs));
  return states.filter(
    ({ outcome, payment_ref }) => outcome !== 'captured' || !used.has(payment_ref ?? ''),
  );
}
