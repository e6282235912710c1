import {
  acceptSignatures,
  needsAcceptance,
  refuseUnsigned,
  type SignedPost,
} from '#merchants/integrations/accept-signatures.ts';
import { mustSign } from '#merchants/integrations/check-signature.ts';
import type { Caller } from '#merchants/integrations/integration.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { noteCommit } from '#platform/database/deadline.ts';
import { advanceListTotal } from '#platform/database/merchant-lists.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import type { KeyedRequest } from '#platform/http/idempotency.sql.ts';
import { recordAnswer } from '#platform/http/idempotency.ts';
import { validationFailed } from '#platform/http/validation.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { pickCustomer } from '#purchases/checkouts/create-checkout.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { recordKeyAction } from '#record/actions/operate.ts';
import { queueLinkMail } from './mail-payment-link.ts';
import type { CreateLinkBody, PresentedLink } from './payment-link.schema.ts';
import { findLink, insertLink } from './payment-link.sql.ts';
import { expiryOf, type PaymentLink, type ReadLink, statusOf } from './payment-link.ts';

/** Creates a link for the integration that made the request. */
export async function createPaymentLink(
  deps: { database: Database; clock: Clock } & QueueDeps,
  post: SignedPost & { caller: Pick<Caller, 'intermediary'>; keyed: KeyedRequest | null },
  merchant: Merchant,
  body: CreateLinkBody,
): Promise<PresentedLink> {
  const id = deps.random.uuid();
  const answer = await transaction(deps, async (tx, maybeCommitted) => {
    const { db } = tx;
    const now = timestamp(merchant.now());
    if (maybeCommitted) {
      // A commit in flight holds this lock. Once we have the lock, the fate of the commit is known.
      await advanceListTotal(db, merchant.id, 'payment_links', 0, now);
      const committed = await findLink(db, merchant.id, id);
      if (committed) return presentLink(committed, merchant);
    }
    if (needsAcceptance([post])) {
      const refused = await refuseUnsigned(db, [post]);
      if (post.key === null && refused.has(post.caller.id)) throw mustSign();
      await acceptSignatures(db, [post], timestamp(deps.clock.now()));
    }
    const by = { id, integration_id: post.caller.id, signed: post.key !== null };
    const link = await writeLink(db, merchant, body, by);
    const refusal = body.mail ? await queueLinkMail(deps, db, merchant, link) : null;
    if (refusal) throw validationFailed([{ path: 'mail', problem: refusal }], { lasting: false });
    const presented = presentLink({ ...link, checkout_status: null }, merchant);
    if (post.keyed) {
      await recordAnswer(db, deps.clock, { ...post.keyed, status: 200, answer: presented });
    }
    if (body.mail) await recordMailed(deps, tx, post.caller, link);
    return presented;
  });
  noteCommit();
  return answer;
}

/**
 * Only links that go out by mail are recorded as actions, because there are too many others. A
 * merchant sees that an intermediary created the link, but not which intermediary.
 */
async function recordMailed(
  deps: Parameters<typeof recordKeyAction>[0],
  tx: Parameters<typeof recordKeyAction>[1],
  { intermediary }: Pick<Caller, 'intermediary'>,
  link: PaymentLink,
): Promise<void> {
  const { id: subject_id, merchant_id, integration_id, amount, reusable, expires_at } = link;
  const made = { merchant_id, ...(!intermediary && { integration_id }) };
  await recordKeyAction(deps, tx, {
    ...{ action: 'payment-links create', subject_id, merchant_id, intermediary },
    details: { ...made, amount, reusable, expires_at, mailed: true },
  });
}

/** Writes a link whose content was validated. */
export function writeLink(
  db: Handle,
  merchant: Merchant,
  content: CreateLinkBody,
  by: { id: string; integration_id: string; signed: boolean; request_id?: string },
): Promise<PaymentLink> {
  const now = merchant.now();
  const { reusable = false, customer } = content;
  const expiry = expiryOf({ ...content, reusable }, now);
  const link = {
    ...by,
    merchant_id: merchant.id,
    amount: content.amount ?? null,
    currency: content.currency,
    client_reference_id: content.client_reference_id,
    notify_url: content.notify_url ?? null,
    success_url: content.success_url ?? null,
    cancel_url: content.cancel_url ?? null,
    customer: customer ? JSON.stringify(pickCustomer(customer)) : null,
    reusable,
    expires_at: expiry && timestamp(expiry),
  };
  return insertLink(db, link, timestamp(now));
}

/** A link as its merchant sees it. The shopper's data is left out. */
export const presentLink = (link: ReadLink, merchant: Pick<Merchant, 'now'>): PresentedLink => ({
  merchant_id: link.merchant_id,
  id: link.id,
  amount: link.amount,
  currency: link.currency,
  client_reference_id: link.client_reference_id,
  reusable: link.reusable,
  created_at: link.created_at,
  expires_at: link.expires_at,
  checkout_id: link.checkout_id,
  status: statusOf(link, merchant.now()),
});
