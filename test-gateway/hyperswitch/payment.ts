import type Stripe from 'stripe';
import type { Static } from 'typebox';
import type { Context } from '../books/context.ts';
import { findIntent } from '../books/payments.ts';
import type { Kept } from '../store.ts';
import { declineOf } from './declines.ts';
import type { intentStatuses, payment } from './payment.schema.ts';

// A payment in the books as Hyperswitch presents it. A payment of nothing, which only verifies a
// card, is a setup in the books.

export type KeptPayment = Kept<'payment_intent'> | Kept<'setup_intent'>;
export type PaymentAnswer = Static<typeof payment>;
type Status = (typeof intentStatuses)[number];

export const isSetup = (kept: KeptPayment): kept is Kept<'setup_intent'> =>
  kept.object.object === 'setup_intent';

/** The payment in its current state; null for an unknown id. */
export function findPayment(context: Context, id: string): KeptPayment | null {
  return findIntent(context, id) ?? context.store.find('setup_intent', id);
}

/** Hyperswitch's names for the card networks. */
const networks = { visa: 'Visa', mastercard: 'Mastercard', amex: 'AmericanExpress' } as const;

const timeOf = (seconds: number) => new Date(seconds * 1000).toISOString();

/** Why the last attempt failed, as the books record it. */
const errorOf = (kept: KeptPayment) =>
  isSetup(kept) ? kept.object.last_setup_error : kept.object.last_payment_error;

const amountOf = (kept: KeptPayment) => (isSetup(kept) ? 0 : kept.object.amount);

export function statusOf(kept: KeptPayment): Status {
  const { status } = kept.object;
  if (status === 'requires_action') return 'requires_customer_action';
  if (status === 'canceled') return 'cancelled';
  if (status === 'requires_capture') return 'requires_capture';
  if (status === 'succeeded') {
    const isPart = !isSetup(kept) && kept.object.amount_received < kept.object.amount;
    return isPart ? 'partially_captured' : 'succeeded';
  }
  return errorOf(kept) ? 'failed' : 'requires_payment_method';
}

/**
 * A client secret can be used only for some time after the payment was created. The payment keeps
 * its status after that.
 */
export function isExpired(context: Context, { hidden, merchant }: KeptPayment): boolean {
  const expires_at = hidden.hyperswitch?.expires_at;
  return expires_at !== undefined && context.timeOf(merchant) > expires_at;
}

export function presentPayment(context: Context, kept: KeptPayment): PaymentAnswer {
  const { object, hidden } = kept;
  const part = hidden.hyperswitch;
  const status = statusOf(kept);
  const amount = amountOf(kept);
  const suffix = isSetup(kept) ? null : kept.object.statement_descriptor_suffix;
  const isTaken = status === 'succeeded' || status === 'partially_captured';
  return {
    payment_id: object.id,
    ...ourNames,
    connector_transaction_id: transactionOf(kept),
    status,
    amount,
    net_amount: amount,
    amount_capturable: isSetup(kept) ? 0 : kept.object.amount_capturable,
    amount_received: isTaken ? (isSetup(kept) ? 0 : kept.object.amount_received) : null,
    client_secret: object.client_secret,
    created: timeOf(object.created),
    modified_at: timeOf(context.timeOf(kept.merchant)),
    currency: (isSetup(kept) ? (part?.currency ?? 'zar') : kept.object.currency).toUpperCase(),
    customer_id: object.customer === null ? null : String(object.customer),
    description: object.description,
    mandate_id: part?.isMandate && isTaken ? `man_${object.id}`.slice(0, 64) : null,
    setup_future_usage: futureUsage(context, kept),
    off_session: part?.off_session ?? null,
    capture_method:
      !isSetup(kept) && kept.object.capture_method === 'manual' ? 'manual' : 'automatic',
    return_url: hidden.return_url,
    authentication_type: part?.authentication_type ?? null,
    next_action: nextAction(object),
    cancellation_reason: object.cancellation_reason,
    metadata: object.metadata,
    attempt_count: 1,
    expires_on: part ? timeOf(part.expires_at) : null,
    mit_category: (part?.mit_category ?? null) as PaymentAnswer['mit_category'],
    billing_descriptor: suffix === null ? null : { statement_descriptor_suffix: suffix },
    ...cardMembers(context, kept, status),
    ...declineOf(errorOf(kept) ?? null, context.account.mapsErrors),
  };
}

/**
 * The intended use of the card. If the acquirer cannot charge stored cards, the real server changes
 * `off_session` to `on_session` once the card has been entered.
 */
function futureUsage({ account }: Context, kept: KeptPayment): PaymentAnswer['setup_future_usage'] {
  const asked = isSetup(kept) ? 'off_session' : kept.object.setup_future_usage;
  const isEntered = kept.object.payment_method !== null;
  if (asked === 'off_session' && isEntered && !account.hasAgreements) return 'on_session';
  return asked as PaymentAnswer['setup_future_usage'];
}

/** A payment in a list. The server fills in only what its table of payments and attempts has. */
export const presentListed = (context: Context, kept: KeptPayment): PaymentAnswer => ({
  ...presentPayment(context, kept),
  amount_received: null,
  cancellation_reason: null,
  error_code: null,
  error_details: null,
  expires_on: null,
  external_authentication_details: null,
  fingerprint: null,
  mandate_id: null,
  network_transaction_id: null,
  network_transaction_link_id: null,
  next_action: null,
  off_session: null,
  payment_method_id: null,
  payment_method_status: null,
  payment_method_tokenization_details: null,
  return_url: null,
  unified_code: null,
  unified_message: null,
});

/** The names of the account and of the acquirer behind it. */
const ourNames = {
  merchant_id: 'merchant_test',
  processor_merchant_id: 'merchant_test',
  connector: 'test_acquirer',
} as const;

/** The acquirer's id for the payment. Null if the acquirer was not asked or did not answer. */
function transactionOf(kept: KeptPayment): string | null {
  if (isSetup(kept)) return kept.hidden.attempt?.id ?? null;
  const isUnheard = kept.object.last_payment_error?.decline_code === 'TIMEOUT';
  return isUnheard || kept.object.latest_charge === null ? null : String(kept.object.latest_charge);
}

function nextAction({ next_action }: KeptPayment['object']): PaymentAnswer['next_action'] {
  const url = next_action?.redirect_to_url?.url;
  return url ? { type: 'redirect_to_url', redirect_to_url: url } : null;
}

type CardMembers = Pick<
  PaymentAnswer,
  | 'payment_method'
  | 'payment_method_data'
  | 'payment_method_id'
  | 'payment_method_status'
  | 'payment_method_tokenization_details'
  | 'fingerprint'
  | 'external_authentication_details'
  | 'network_transaction_id'
  | 'network_transaction_link_id'
  | 'capture_before'
>;

/** The members that are known once a card has been entered. */
function cardMembers(
  { store, account }: Context,
  kept: KeptPayment,
  status: PaymentAnswer['status'],
): CardMembers {
  const { object, hidden } = kept;
  const method =
    (typeof object.payment_method === 'string'
      ? store.find('payment_method', object.payment_method)?.object
      : null) ??
    errorOf(kept)?.payment_method ??
    null;
  // A hold stores its card, even if it is cancelled afterwards.
  const wasHeld = status === 'cancelled' && !isSetup(kept) && kept.object.latest_charge !== null;
  const isDone =
    wasHeld || ['succeeded', 'requires_capture', 'partially_captured'].includes(status);
  const stored = isDone && method !== null && object.payment_method === method.id;
  const isStored = stored && (isSetup(kept) || kept.object.setup_future_usage === 'off_session');
  const charge = isSetup(kept) ? null : store.find('charge', String(kept.object.latest_charge));
  const details = charge?.object.payment_method_details?.card;
  const secure = isSetup(kept)
    ? kept.hidden.attempt?.payment_method_details.card?.three_d_secure
    : details?.three_d_secure;
  const until = isSetup(kept) ? null : kept.hidden.capture_before;
  return {
    payment_method: method === null ? null : 'card',
    payment_method_data: method?.card ? { card: cardOf(method.card), billing: null } : null,
    payment_method_id: isStored || hidden.hyperswitch?.off_session ? (method?.id ?? null) : null,
    payment_method_status: isStored ? (method?.customer === null ? 'inactive' : 'active') : null,
    payment_method_tokenization_details: tokenizationOf({ store, account }, method),
    // Only accounts that block cards get a fingerprint.
    fingerprint: null,
    external_authentication_details: authenticationOf(secure ?? null),
    network_transaction_id: details?.network_transaction_id ?? null,
    network_transaction_link_id: details?.transaction_link_id ?? null,
    capture_before: status === 'requires_capture' && until !== null ? timeOf(until) : null,
  };
}

/**
 * The stored card, with the card network's ids of the payment that stored the card. Later charges
 * refer to those ids. Null if no payment stored the card.
 */
function tokenizationOf(
  { store, account }: Pick<Context, 'store' | 'account'>,
  method: Stripe.PaymentMethod | null,
): PaymentAnswer['payment_method_tokenization_details'] {
  const stored_by = method && store.find('payment_method', method.id)?.hidden.stored_by;
  if (!stored_by) return null;
  const details = store.find('charge', stored_by)?.object.payment_method_details?.card;
  const isActive = method.customer !== null;
  return {
    payment_method_id: method.id,
    payment_method_status: isActive ? 'active' : 'inactive',
    psp_tokenization: account.hasAgreements,
    network_tokenization: false,
    network_transaction_id: details?.network_transaction_id ?? null,
    network_transaction_link_id: details?.transaction_link_id ?? null,
    is_eligible_for_mit_payment: isActive && account.hasAgreements,
  };
}

function cardOf(
  card: Stripe.PaymentMethod.Card,
): NonNullable<PaymentAnswer['payment_method_data']>['card'] {
  return {
    last4: card.last4,
    card_type: 'CREDIT',
    card_network: networks[card.brand as keyof typeof networks] ?? null,
    card_issuer: null,
    card_issuing_country: card.country,
    card_isin: null,
    card_extended_bin: null,
    card_exp_month: String(card.exp_month).padStart(2, '0'),
    card_exp_year: String(card.exp_year),
    card_holder_name: null,
    payment_checks: null,
    authentication_data: null,
  };
}

type Secure = Pick<
  Stripe.Charge.PaymentMethodDetails.Card.ThreeDSecure,
  'authentication_flow' | 'electronic_commerce_indicator' | 'result' | 'transaction_id' | 'version'
>;

function authenticationOf(secure: Secure | null): PaymentAnswer['external_authentication_details'] {
  // A card whose network has no 3-D Secure is not authenticated at all.
  if (secure === null || secure.result === 'not_supported') return null;
  return {
    authentication_flow: secure.authentication_flow as 'challenge' | 'frictionless' | null,
    electronic_commerce_indicator: secure.electronic_commerce_indicator,
    status: secure.result === 'failed' ? 'failed' : 'success',
    ds_transaction_id: secure.transaction_id,
    version: secure.version,
    error_code: null,
    error_message: null,
  };
}

/** The parameters that Hyperswitch adds to the return URL after a challenge. */
export function returnParameters(kept: KeptPayment): Record<string, string> {
  return {
    payment_id: kept.object.id,
    status: statusOf(kept),
    payment_intent_client_secret: kept.object.client_secret ?? '',
    amount: String(amountOf(kept)),
  };
}
