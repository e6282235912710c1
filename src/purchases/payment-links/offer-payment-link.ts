import { listOwnIntegrations } from '#merchants/integrations/integration.sql.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import { listNewestAddresses } from '#purchases/callbacks/event-receiver.sql.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { writeLink } from './create-payment-link.ts';
import { queueLinkMail } from './mail-payment-link.ts';
import type { CreateLinkBody } from './payment-link.schema.ts';
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
  const { days, notify_url: _, ...rest } = offer;
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
    const by = { id: deps.random.uuid(), integration_id: integration.id, signed: false };
    const link = await writeLink(db, merchant, content, by);
    const { id, amount, reusable, expires_at } = link;
    const refusal = content.mail ? await queueLinkMail(deps, db, merchant, link) : null;
    if (refusal !== null) throw new OperatorError(`The mail ${refusal}.`);
    const mailed = content.mail === true;
    const details = { merchant_id, amount, reusable, expires_at, ...(mailed && { mailed }) };
    return { subject_id: id, merchant_id, details, result: id };
  });
}
