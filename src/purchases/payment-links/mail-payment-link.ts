import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { advanceListTotal } from '#platform/database/merchant-lists.sql.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import { countLinkMails, selectLinkMails } from '#purchases/messages/message.sql.ts';
import { type QueueDeps, queueMessages } from '#purchases/messages/queue-messages.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { lockLink, withCheckouts } from './payment-link.sql.ts';
import {
  linkMailsMax,
  linkMailsPerDayMax,
  linkMailsToOneMax,
  type PaymentLink,
  statusOf,
} from './payment-link.ts';

// The staff of a shop may type any e-mail address as the shopper's. These limits keep the shop from
// mailing strangers through us: the text is ours, a link has one e-mail address, and a merchant may
// send only so many mails a day, few of them to one e-mail address.

const daySeconds = 24 * 3600;
/** The shortest time between two mails with the same link. */
const pauseSeconds = 600;

/**
 * Queues the mail with a link to its shopper. Returns why that is not possible, or null. The caller
 * holds the lock of the merchant's list of links, so that concurrent mails are counted.
 */
export async function queueLinkMail(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  link: PaymentLink,
): Promise<string | null> {
  if (!deps.sendsMessages) return 'cannot be sent, because this service sends no mail';
  if (link.customer === null) return 'needs the address of the shopper';
  const now = merchant.now();
  const before = (seconds: number) => timestamp(secondsAfter(now, -seconds));
  const earlier = await selectLinkMails(db, link).limit(linkMailsMax).execute();
  if (earlier.length >= linkMailsMax) {
    return `was already sent ${linkMailsMax} times, the most for one link. Send the link yourself`;
  }
  if ((earlier[0]?.created_at ?? '') > before(pauseSeconds)) {
    return 'was sent a moment ago. Wait ten minutes before the next one';
  }
  const since = { at: before(daySeconds), email: link.customer.email };
  const sent = await countLinkMails(db, merchant.id, since, linkMailsPerDayMax);
  if (sent.all >= linkMailsPerDayMax) {
    return `cannot be sent: this shop has mailed ${linkMailsPerDayMax} links in 24 hours. Send the link yourself`;
  }
  if (sent.toOne >= linkMailsToOneMax) {
    return `cannot be sent: this shop has mailed ${linkMailsToOneMax} links to this address in 24 hours. Send the link yourself`;
  }
  await queueMessages(deps, db, [
    {
      merchant_id: merchant.id,
      checkout_id: null,
      payment_link_id: link.id,
      kind: 'payment_link',
      about: String(earlier.length + 1),
      at: timestamp(now),
    },
  ]);
  return null;
}

/** Mails a link to its shopper for a person, or mails it again. */
export async function mailPaymentLink(
  deps: OperatorDeps & QueueDeps,
  operator: string,
  key: { merchant_id: string; id: string },
): Promise<void> {
  const { merchant_id, id: subject_id } = key;
  await operate(deps, operator, 'payment-links mail', async (db) => {
    const merchant = await findMerchant(db, deps.clock, merchant_id);
    if (!merchant) throw new OperatorError(`There is no merchant ${merchant_id}.`);
    await advanceListTotal(db, merchant_id, 'payment_links', 0, timestamp(merchant.now()));
    const locked = await lockLink(db, key);
    const [link] = locked ? await withCheckouts(db, [locked]) : [];
    if (!link) throw new OperatorError(`There is no payment link ${subject_id}.`);
    const status = statusOf(link, merchant.now());
    if (status !== 'active') throw new OperatorError(`A link that is ${status} cannot be sent.`);
    const refusal = await queueLinkMail(deps, db, merchant, link);
    if (refusal !== null) throw new OperatorError(`The mail ${refusal}.`);
    return { subject_id, merchant_id, details: { merchant_id }, result: null };
  });
}
