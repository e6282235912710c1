import assert from 'node:assert/strict';
import type { Capabilities } from '#gateway/capabilities.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { findIntegration } from '#merchants/integrations/integration.sql.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Database } from '#platform/database/database.ts';
import { snapshot } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckout, findCheckoutMerchant } from '#purchases/checkouts/checkout.sql.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { countCardRefunds, sumRefundable } from './refund.sql.ts';
import { byPayment, explainClosedWindow, type PlannedPart } from './refund.ts';
import { type RefundSources, readSources } from './refund-sources.sql.ts';
import { planRefund, sumOf } from './start-refund.ts';

export type RefundPreview = {
  merchant_id: string;
  checkout_id: string;
  amount: number;
  currency: string;
  remainder: number;
  parts: PlannedPart[];
  /** Why the amount cannot be refunded, or null. */
  refusal: string | null;
  warnings: string[];
};

type PlannedCard = PlannedPart & Pick<Instalment, 'payment_ref' | 'collected_at'>;

/** Why the gateway would not accept one of the refunds that it would have to make, or null. */
function explainCapabilities(
  { refundMin, refundsMax, refundDays }: Capabilities,
  parts: PlannedCard[],
  counts: Map<string, number>,
  now: Temporal.Instant,
  show: (cents: number) => string,
): string | null {
  for (const together of byPayment(parts)) {
    const [{ payment_ref, collected_at: taken }] = together;
    const name = `Payment ${together.map(({ instalment }) => instalment).join(' with ')}`;
    const amount = sumOf(together);
    if (amount < refundMin) {
      return `${name} would return ${show(amount)}, but the gateway refunds at least ${show(refundMin)}.`;
    }
    const count = counts.get(payment_ref ?? '') ?? 0;
    if (refundsMax !== null && count >= refundsMax) {
      return `${name} has ${count} refunds, and the gateway accepts no more than ${refundsMax}.`;
    }
    if (refundDays !== null && taken && now.since(taken).total('hours') > refundDays * 24) {
      return `${name} was charged more than ${refundDays} days ago, and the gateway no longer refunds it.`;
    }
  }
  return null;
}

/** Why the refund would not begin at once. */
function explainWaiting(
  parts: PlannedPart[] | null,
  { isDisputed, isBlocked, isCollecting }: RefundSources,
): string[] {
  return [
    parts === null &&
      'The refund would leave a payment that is too small for the gateway. It will wait until the first payment is captured, in the night after the purchase.',
    isDisputed &&
      'The shopper is disputing a payment with the bank. A refund will wait until that is decided.',
    isBlocked &&
      'The gateway and our records differ about this checkout, so it is blocked. A refund will wait until an operator of the payment service has released it.',
    isCollecting &&
      'A payment is being collected right now. A refund will wait until the outcome is known, and may then be taken from other payments.',
  ].filter((warning) => warning !== false);
}

export type CapabilitiesOf = { of(name: GatewayName): { capabilities: Capabilities } };

/**
 * Finds the payments that a refund of this amount would be taken from if it began now (decision
 * 0014).
 */
export async function previewRefund(
  deps: { database: Database; clock: Clock; gateways: CapabilitiesOf },
  id: string,
  amount: number,
): Promise<RefundPreview> {
  return await snapshot(deps, async (db) => {
    const merchant_id = isUuid(id) ? await findCheckoutMerchant(db, id) : null;
    const merchant = merchant_id && (await findMerchant(db, deps.clock, merchant_id));
    const checkout = merchant && (await findCheckout(db, merchant.id, id));
    if (!checkout) throw new OperatorError(`There is no checkout ${id}.`);
    const key = { merchant_id: merchant.id, checkout_id: checkout.id };
    const preview = { ...key, amount, currency: checkout.currency, parts: [], warnings: [] };
    if (checkout.status !== 'successful') {
      const refusal = `The checkout is ${checkout.status}: only successful ones can be refunded.`;
      return { ...preview, remainder: 0, refusal };
    }
    const remainder = await sumRefundable(db, checkout);
    const place = { currency: checkout.currency, locale: merchant.territory.locale };
    const show = (cents: number) => showMoney(cents, place);
    if (amount > remainder) {
      const refusal = `The amount exceeds the refundable remainder of ${show(remainder)}.`;
      return { ...preview, remainder, refusal };
    }
    const sources = await readSources(db, key);
    const parts = planRefund(merchant, sources, amount);
    const payments = (parts ?? []).flatMap((part) => {
      const payment = sources.instalments.find(({ number }) => number === part.instalment);
      return part.kind === 'card' && payment ? [{ ...payment, ...part }] : [];
    });
    const refused = explainCapabilities(
      deps.gateways.of(checkout.gateway).capabilities,
      payments,
      await countCardRefunds(db, key),
      merchant.now(),
      show,
    );
    if (refused !== null) return { ...preview, remainder, parts: parts ?? [], refusal: refused };
    const warnings = explainWaiting(parts, sources);
    const creator = await findIntegration(db, checkout.integration_id);
    assert(creator && checkout.completed_at !== null);
    const { completed_at } = checkout;
    const { refund_mode } = creator;
    const { time_zone } = merchant.territory;
    const now = merchant.now();
    const closed = explainClosedWindow({ completed_at, refund_mode, time_zone }, now);
    if (closed !== null) warnings.push(`The merchant cannot request this refund now. ${closed}`);
    return { ...preview, remainder, parts: parts ?? [], refusal: null, warnings };
  });
}
