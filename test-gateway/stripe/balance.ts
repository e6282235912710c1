import type Stripe from 'stripe';
import { bookFailures } from '../books/balance.ts';
import type { Context } from '../books/context.ts';
import { agedTransaction } from '../objects/balance-transaction.ts';
import type { Kept } from '../store.ts';
import { invalidRequest, missing } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok } from './operation.ts';

const present = (context: Context, kept: Kept<'balance_transaction'>): Stripe.BalanceTransaction =>
  agedTransaction(kept, context.timeOf(kept.merchant)).object;

export function retrieveBalanceTransaction(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  bookFailures(context);
  const transaction = context.store.find('balance_transaction', id);
  if (transaction === null) throw missing('balance transaction', id);
  return ok(present(context, transaction));
}

/** The charge, refund or dispute that moved the balance. Null if there is none. */
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
