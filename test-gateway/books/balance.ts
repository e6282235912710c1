import { cardNamed } from '../cards.ts';
import { makeBalanceTransaction, paymentFee } from '../objects/balance-transaction.ts';
import type { Kept } from '../store.ts';
import type { Context } from './context.ts';
import { openDispute } from './disputes.ts';

/**
 * Books the amount of a captured charge, and its fee. If the test card is one whose payments are
 * always disputed, this also opens the dispute. The caller saves the charge.
 */
export function settleCharge(
  context: Context,
  charge: Kept<'charge'>,
  method: Kept<'payment_method'> | null,
): void {
  const { store, account } = context;
  const { object } = charge;
  const now = context.timeOf(charge.merchant);
  const transaction = makeBalanceTransaction(
    { merchant: charge.merchant, now },
    {
      type: 'charge',
      reporting_category: 'charge',
      amount: object.amount_captured,
      fee: paymentFee(account.fees, object.amount_captured),
      currency: object.currency,
      description: object.description,
      source: object.id,
    },
    account.settlement,
  );
  store.save('balance_transaction', transaction);
  object.balance_transaction = transaction.object.id;
  const reason = method === null ? undefined : cardNamed(method.hidden.card).dispute;
  if (reason) openDispute(context, charge, { reason, amount: object.amount_captured });
}

/**
 * Books the amount that a refund returns to a card, unless the refund failed at once. The fee of
 * the payment is not returned.
 */
export function settleRefund(context: Context, refund: Kept<'refund'>): void {
  const { object, merchant } = refund;
  if (object.status === 'failed') return;
  object.balance_transaction = bookRefund(
    context,
    refund,
    'refund',
    -object.amount,
    object.created,
  );
  context.store.save('refund', { object, hidden: refund.hidden, merchant });
}

function bookRefund(
  { store, account }: Context,
  { object, merchant }: Kept<'refund'>,
  type: 'refund' | 'refund_failure',
  amount: number,
  now: number,
): string {
  const transaction = makeBalanceTransaction(
    { merchant, now },
    {
      type,
      reporting_category: type,
      amount,
      fee: null,
      currency: object.currency,
      description: null,
      source: object.id,
    },
    account.settlement,
  );
  store.save('balance_transaction', transaction);
  return transaction.object.id;
}

/**
 * Books the failures of refunds that have come due. No timer runs: a refund turns failed when it is
 * read, and reading books nothing.
 */
export function bookFailures(context: Context): void {
  const { store } = context;
  const failed = store
    .refundsToFail()
    .filter(({ hidden, merchant }) => hidden.at <= context.timeOf(merchant));
  if (failed.length === 0) return;
  store.transaction(() => {
    for (const refund of failed) {
      const { object, hidden, merchant } = refund;
      object.failure_balance_transaction = bookRefund(
        context,
        refund,
        'refund_failure',
        object.amount,
        hidden.at,
      );
      store.save('refund', { object, hidden: { ...hidden, isBooked: true }, merchant });
    }
  });
}
