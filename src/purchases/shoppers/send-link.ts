import { createHash, timingSafeEqual } from 'node:crypto';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { type Checkout, normaliseEmail } from '#purchases/checkouts/checkout.ts';
import { messageTokenContext } from '#purchases/messages/message.ts';
import { type QueueDeps, queueMessages } from '#purchases/messages/queue-messages.ts';
import { insertPlanLink } from './plan-access.sql.ts';
import type { PlanPanel } from './plan-attempt.ts';

export type LinkDeps = QueueDeps & { database: Database; clock: Clock; sealing: Sealing };

const linkMinutes = 10;

export const hashToken = (token: string) => createHash('sha256').update(token).digest();

/**
 * Mails a one-time link if the e-mail address is the one given at checkout. The route answers the
 * same either way, so that a client cannot find out the e-mail address by asking. Both cases write
 * the same rows, except for the message, so that the time taken reveals little. The route also
 * makes all answers equally slow.
 */
export async function sendLink(
  deps: LinkDeps,
  merchant: Merchant,
  checkout: Checkout,
  { email, panel }: { email: string; panel?: PlanPanel | undefined },
  mayMail: () => Promise<boolean> = async () => true,
): Promise<void> {
  const { merchant_id, id: checkout_id } = checkout;
  const given = hashToken(normaliseEmail(email));
  const isOwner = timingSafeEqual(given, hashToken(normaliseEmail(checkout.customer.email)));
  // Only requests with the right e-mail address are counted, so that strangers cannot use up the
  // shopper's mails.
  const isMailed = isOwner && (await mayMail());
  const token = deps.random.bytes(32).toString('base64url');
  const id = deps.random.uuid();
  const sealed_token = deps.sealing.seal(token, messageTokenContext({ id }));
  // The ids of both rows are chosen in advance, so that running this twice after a COMMIT of
  // unknown fate writes them once.
  await transaction(deps, async ({ db }) => {
    const now = merchant.now();
    const at = timestamp(now);
    const expires_at = timestamp(now.add({ minutes: linkMinutes }));
    // A link for the wrong e-mail address is also written, but its token is never sent.
    const token_hash = hashToken(token);
    await insertPlanLink(db, { merchant_id, checkout_id, token_hash, created_at: at, expires_at });
    if (!isMailed) return;
    const link = { id, sealed_token };
    await queueMessages(deps, db, [
      {
        merchant_id,
        checkout_id,
        kind: 'sign_in_link',
        about: id,
        facts: { expires_at, ...(panel && { panel }) },
        link,
        at,
      },
    ]);
  });
}
