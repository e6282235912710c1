import type Stripe from 'stripe';
import { cardNamed } from '../cards.ts';
import { invalidRequest, missing } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import {
  agedTransaction,
  makeBalanceTransaction,
  paymentFee,
  type UnpaidType,
  unpaidCategories,
} from '../objects/balance-transaction.ts';
import type { Kept } from '../store.ts';
import { openDispute } from './disputes.ts';
import { answerList } from './lists.ts';
import { type Answer, type Context, ok, oneOf } from './operation.ts';

/**
 * Books what came in by a captured charge, and what it costs. A card that disputes its payments
 * does so now. The caller saves the charge.
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

/** Books what goes back to a card. The fee of the payment is not returned. */
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

/** Books the refunds that have failed since: objects age when they are read. */
function bookFailures(context: Context): void {
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

/**
 * Control for tests: from now on the balance is in another currency, or in the payments' currency
 * again.
 */
export function controlSettlement(context: Context, form: Form): Answer {
  const { currency, basis_points } = readForm(form, {
    currency: 'string',
    basis_points: 'integer',
  });
  context.account.settlement =
    currency === undefined ? null : { currency, rate: (basis_points ?? 10_000) / 10_000 };
  return ok({});
}

/**
 * Control for tests: the balance moves without a payment. The gateway charges for a service,
 * corrects the balance, or pays it out to the account's own bank.
 */
export function controlTransaction(context: Context, form: Form): Answer {
  const given = readForm(form, { type: 'string', amount: 'integer', currency: 'string' });
  oneOf(given.type, Object.keys(unpaidCategories), 'type');
  const type = (given.type ?? 'stripe_fee') as UnpaidType;
  const transaction = makeBalanceTransaction(
    context,
    {
      type,
      reporting_category: unpaidCategories[type],
      amount: given.amount ?? -1_000,
      fee: null,
      currency: given.currency ?? 'zar',
      description: type === 'stripe_fee' ? 'Radar for Fraud Teams' : null,
      source: null,
    },
    context.account.settlement,
  );
  context.store.save('balance_transaction', transaction);
  return ok(transaction.object);
}

const present = (context: Context, kept: Kept<'balance_transaction'>): Stripe.BalanceTransaction =>
  agedTransaction(kept, context.timeOf(kept.merchant)).object;

export function retrieveBalanceTransaction(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  bookFailures(context);
  const transaction = context.store.find('balance_transaction', id);
  if (transaction === null) throw missing('balance transaction', id);
  return ok(present(context, transaction));
}

/** The charge, refund or dispute that moved the balance. */
function sourceOf({ store }: Context, source: Stripe.BalanceTransaction['source']): object | null {
  if (typeof source !== 'string') return null;
  const kinds = ['charge', 'refund', 'dispute'] as const;
  for (const kind of kinds) {
    const found = store.find(kind, source);
    if (found !== null) return found.object;
  }
  return null;
}

export function listBalanceTransactions(context: Context, form: Form): Answer {
  bookFailures(context);
  return answerList(context, form, {
    kind: 'balance_transaction',
    url: '/v1/balance_transactions',
    filters: ['type', 'source', 'currency'],
    isExpandable: true,
    present: (transaction, expand = []) => {
      const wrong = expand.find((member) => member !== 'data.source');
      if (wrong !== undefined) {
        throw invalidRequest(`This property cannot be expanded: ${wrong}.`, { param: 'expand' });
      }
      const object = present(context, transaction);
      return expand.length === 0 ? object : { ...object, source: sourceOf(context, object.source) };
    },
  });
}
