import { chooseGateway } from '#gateway/gateways.ts';
import { openSigningKeys } from '#merchants/integrations/callback-key.ts';
import { findIntegration, listIntegrations } from '#merchants/integrations/integration.sql.ts';
import {
  currentSigningKey,
  type Integration,
  type SigningKey,
} from '#merchants/integrations/integration.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { DeliveryDeps } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { findCheckout, findNewestCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { checkoutCommits, createCheckout } from '#purchases/checkouts/create-checkout.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { Context } from './command.ts';
import type { Connection } from './connect.ts';
import { findGateways } from './sandbox-gateway.ts';

type Deps = Connection & DeliveryDeps;

export type Drill = {
  context: Context;
  deps: Deps;
  merchant: Merchant;
  notify_url: string;
  checkout: Checkout;
  integration: Integration;
  keys: SigningKey[];
  /** Whether the shop created the order, so that its receiver must know it. */
  isKnownOrder: boolean;
};

type Order = Pick<Drill, 'checkout' | 'integration' | 'keys' | 'isKnownOrder'>;

/** The order that the drill pays: an unpaid order of the shop, or one that the drill creates. */
export async function findOrder(
  deps: Deps,
  merchant: Merchant,
  notify_url: string,
  reference: string | undefined,
): Promise<Order> {
  const { db } = deps.database;
  const openAt = timestamp(merchant.now());
  const named = reference === undefined ? {} : { client_reference_id: reference };
  const checkout = await findNewestCheckout(db, merchant.id, { ...named, notify_url, openAt });
  if (checkout !== null) {
    const integration = await findIntegration(db, checkout.integration_id);
    if (integration === null) throw new OperatorError('The integration of this order is missing.');
    const keys = await findKeys(deps, integration);
    return { checkout, integration, keys, isKnownOrder: true };
  }
  if (reference !== undefined) {
    const other = await findNewestCheckout(db, merchant.id, named);
    throw new OperatorError(explainUnusable(reference, notify_url, other));
  }
  const integration = (await listIntegrations(db, merchant.id)).findLast(
    (one) => one.revoked_at === null && one.merchant_id === merchant.id,
  );
  if (!integration) {
    throw new OperatorError(
      `This merchant has no integration. Create one with \`tranche integrations create --merchant ${merchant.id}\`.`,
    );
  }
  const keys = await findKeys(deps, integration);
  const band = merchant.rules.at(-1) as Merchant['rules'][number];
  const own = {
    client_reference_id: `drill-${deps.random.bytes(4).toString('hex')}`,
    amount: Math.min(Math.max(band.from_amount, 150_000), band.to_amount),
  };
  const made = await makeCheckout({ deps, merchant, integration, keys, notify_url }, own);
  return { checkout: made, integration, keys, isKnownOrder: false };
}

function explainUnusable(reference: string, notify_url: string, checkout: Checkout | null): string {
  if (checkout === null) {
    return `No checkout of this merchant has the reference ${reference}. Let your shop create one and leave it unpaid; the drill pays it.`;
  }
  if (checkout.notify_url !== notify_url) {
    return `The callbacks of ${reference} go to ${checkout.notify_url ?? 'no address'}, not to ${notify_url}.`;
  }
  return checkout.status === 'received'
    ? `The payment page of ${reference} has expired. Name an unpaid order.`
    : `${reference} has already ended (${checkout.status}), so a receiver treats every callback as a repeated one. Name an unpaid order.`;
}

async function findKeys(deps: Deps, integration: Integration): Promise<SigningKey[]> {
  const now = timestamp(deps.clock.now());
  const keys = await openSigningKeys(deps, deps.database.db, integration.id, now);
  if (keys.length === 0) {
    throw new OperatorError(
      `The integration has no signing key. Issue one with \`tranche integrations rotate ${integration.id} --credential signing_key\`.`,
    );
  }
  return keys;
}

/** Creates a checkout as a request from the merchant's server would, but without HTTP. */
export async function makeCheckout(
  drill: Pick<Drill, 'deps' | 'merchant' | 'integration' | 'keys' | 'notify_url'>,
  order: { client_reference_id: string; amount: number },
): Promise<Checkout> {
  const { deps, merchant, integration, keys, notify_url } = drill;
  const { settings } = await findGateways(deps.config);
  const gateways = { choose: (of: Merchant) => chooseGateway(settings, of) };
  const { id } = await createCheckout(
    { ...deps, gateways, commitCheckout: checkoutCommits(deps) },
    {
      caller: integration,
      // The drill must not make signing mandatory.
      key: integration.signing_required_at === null ? null : (currentSigningKey(keys) ?? null),
      keyed: null,
    },
    merchant,
    {
      checkout: {
        ...order,
        currency: merchant.territory.currency,
        notify_url,
        success_url: notify_url,
        cancel_url: notify_url,
        customer: { email: 'drill@example.com' },
      },
    },
  );
  return (await findCheckout(deps.database.db, merchant.id, id)) as Checkout;
}
