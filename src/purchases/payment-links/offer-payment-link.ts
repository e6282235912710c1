import { listOwnIntegrations } from '#merchants/integrations/integration.sql.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { advanceListTotal } from '#platform/database/merchant-lists.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import { listNewestAddresses } from '#purchases/callbacks/event-receiver.sql.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { writeLink } from './create-payment-link.ts';
import { queueLinkMail } from './mail-payment-link.ts';
import type { CreateLinkBody } from './payment-link.schema.ts';
import { findRequestedLink } from './payment-link.sql.ts';
import type { PaymentLink } from './payment-link.ts';
import { explainLinkRules } from './validate-link.ts';

export type OfferDeps = OperatorDeps & QueueDeps & { callbackAllow: Destinations };

export type Offer = Pick<
  CreateLinkBody,
  'amount' | 'client_reference_id' | 'customer' | 'expires_at' | 'reusable' | 'mail'
> & {
  /**
   * Null if no callbacks are made. If absent, callbacks go to the same URL as those for the newest
   * order.
   */
  notify_url?: string | null | undefined;
  /** The number of days after which the link expires. Replaces `expires_at`. */
  days?: number | undefined;
  /**
   * The browser's id of this request. Repeating the request does not make a second link. It is not
   * the link's own id, because those ascend with time.
   */
  request_id?: string | undefined;
};

/**
 * Creates a link for a person. The link belongs to the merchant's newest integration. Its callbacks
 * go to the same URL as those for the newest order, if any, unless the person gives a URL or wants
 * no callbacks.
 */
export async function offerPaymentLink(
  deps: OfferDeps,
  operator: string,
  merchant_id: string,
  offer: Offer,
): Promise<string> {
  const { merchant, integration, notify_url } = await reading(deps, async (db) => {
    const merchant = await findMerchant(db, deps.clock, merchant_id);
    const [integration] = await listOwnIntegrations(db, merchant_id, 1);
    if (!merchant) throw new OperatorError(`There is no merchant ${merchant_id}.`);
    if (!integration) {
      throw new OperatorError(`${merchant.name} has no integration. Create one first.`);
    }
    const of = { integration_id: integration.id, merchant_id };
    const given = offer.notify_url;
    const known = given === undefined ? (await listNewestAddresses(db, [of]))[0] : null;
    return { merchant, integration, notify_url: given ?? known?.notify_url };
  });
  const { days, request_id, notify_url: _, ...rest } = offer;
  const content = {
    ...rest,
    ...(days !== undefined && {
      expires_at: merchant
        .now()
        .add({ hours: 24 * days })
        .toString(),
    }),
    ...(notify_url !== undefined && { notify_url }),
    currency: merchant.territory.currency,
  };
  const [problem] = explainLinkRules(merchant, deps.callbackAllow, content);
  if (problem) {
    const { path } = problem;
    throw new OperatorError(`${path ? `${path} ` : ''}${problem.problem}.`);
  }
  return await operate(deps, operator, 'payment-links create', async (db) => {
    const earlier = await findEarlier(db, merchant, offer);
    const by = { id: deps.random.uuid(), integration_id: integration.id, signed: false };
    const requested = { ...by, ...(request_id !== undefined && { request_id }) };
    const link = earlier ?? (await writeLink(db, merchant, content, requested));
    const { id, amount, reusable, expires_at } = link;
    const refusal = content.mail && !earlier ? await queueLinkMail(deps, db, merchant, link) : null;
    if (refusal !== null) throw new OperatorError(`The mail ${refusal}.`);
    const mailed = content.mail === true && !earlier;
    const details = { merchant_id, amount, reusable, expires_at, ...(mailed && { mailed }) };
    return { subject_id: id, merchant_id, details, result: id };
  });
}

/**
 * Returns the link that an earlier run of this request made, or null. Throws if the earlier run
 * asked for another link.
 */
async function findEarlier(
  db: Handle,
  merchant: Merchant,
  offer: Offer,
): Promise<PaymentLink | null> {
  if (offer.request_id === undefined) return null;
  // A request that is still being carried out holds this lock.
  await advanceListTotal(db, merchant.id, 'payment_links', 0, timestamp(merchant.now()));
  const earlier = await findRequestedLink(db, merchant.id, offer.request_id);
  if (earlier === null) return null;
  const { amount = null, client_reference_id, reusable = false, customer } = offer;
  const isSame =
    earlier.amount === amount &&
    earlier.client_reference_id === client_reference_id &&
    earlier.reusable === reusable &&
    (earlier.customer?.email ?? null) === (customer?.email ?? null);
  if (isSame) return earlier;
  throw new OperatorError('This request was used for another link. Start a new request.');
}
