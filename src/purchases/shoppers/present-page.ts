import type { Gateway } from '#gateway/gateway.ts';
import { preselectedTerm } from '#merchants/merchant.ts';
import { type Clock, secondsAfter } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import type { Language } from '#platform/shared/language.ts';
import { consentVersion } from '#platform/shared/words/consent-version.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { deadlineSeconds } from '#purchases/callbacks/delivery/limits.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import {
  isFirstPayment,
  isInFlight,
  isOnPlan,
  type PaymentAttempt,
} from '#purchases/payments/payment-attempt.ts';
import { isOpen, mayTryAgain } from '#purchases/payments/start-payment.ts';
import type { OpenedPage } from './open-page.ts';
import type { PayPage } from './pay-page.ts';
import { type Plan, withoutReasons } from './plan.ts';
import { presentPlanAttempt } from './plan-attempt.ts';

/** Everything that the shopper sees now. */
export function presentPage(
  deps: {
    clock: Clock;
    gateway: Gateway;
    environment: Environment;
    page: HostedPageSettings;
    sendsMessages: boolean;
  },
  opened: OpenedPage,
  language: Language,
): PayPage {
  const { merchant, checkout, callback, plan, session, paused } = opened;
  const attempts = opened.attempts.filter(isFirstPayment);
  const onPlan = opened.attempts.find(isOnPlan) ?? null;
  const now = merchant.now();
  const purchaseDate =
    checkout.completed_at === null ? now : Temporal.Instant.from(checkout.completed_at);
  const inFlight = attempts.find(isInFlight);
  const [latest] = attempts;
  const isDelivering = callback !== null && isFirstDelivery(callback, now);
  const status = isDelivering ? 'paying' : statusOf(checkout, attempts, inFlight, now);
  return {
    status,
    test_mode: deps.environment === 'sandbox',
    mailbox_url: deps.page.mailboxUrl,
    merchant_name: merchant.name,
    amount: checkout.amount,
    currency: checkout.currency,
    language,
    locale: merchant.territory.locale,
    time_zone: merchant.territory.time_zone,
    client_reference_id: checkout.client_reference_id,
    line_items: checkout.line_items,
    plans: checkout.terms.map((number_of_payments) => ({
      number_of_payments,
      payments: planPayments(checkout.amount, number_of_payments, merchant.localDate(purchaseDate)),
    })),
    no_fees: merchant.no_fees,
    number_of_payments:
      checkout.number_of_payments ??
      latest?.number_of_payments ??
      preselectedTerm(merchant, checkout.terms),
    decline: status === 'open' && latest ? declineOf(latest) : null,
    paused,
    plan: plan && presentCard(session === null ? withoutReasons(plan) : plan, attempts, onPlan),
    sends_links: deps.sendsMessages,
    session,
    attempt: presentPlanAttempt(onPlan, session !== null, now),
    challenge_url: status === 'challenge' ? (inFlight?.challenge_url ?? null) : null,
    return_url: callback?.redirect_url ?? returnUrl(checkout, status),
    expires_at: checkout.expires_at,
    card_entry: deps.gateway.cardEntry,
    card_brands: deps.page.cardBrands,
    operator: deps.page.operator,
    consent_version: consentVersion(language),
  };
}

/**
 * The first delivery of the callback is in flight. The merchant's response may say where the
 * shopper goes, so the page waits for it until the deadline.
 */
function isFirstDelivery(
  { status, attempts, created_at }: Callback,
  now: Temporal.Instant,
): boolean {
  const end = secondsAfter(Temporal.Instant.from(created_at), deadlineSeconds);
  return status === 'pending' && attempts === 0 && Temporal.Instant.compare(now, end) < 0;
}

function statusOf(
  checkout: Checkout,
  attempts: PaymentAttempt[],
  inFlight: PaymentAttempt | undefined,
  now: Temporal.Instant,
): PayPage['status'] {
  if (checkout.status !== 'received') return checkout.status;
  if (inFlight) return inFlight.status === 'challenged' ? 'challenge' : 'paying';
  return isOpen(checkout, now) && mayTryAgain(attempts) ? 'open' : 'expired';
}

/**
 * A once-off payment stores no card; its attempt still says which one paid. If the hold lapsed, the
 * shopper may have paid it later with another card.
 */
function presentCard(plan: Plan, attempts: PaymentAttempt[], onPlan: PaymentAttempt | null): Plan {
  const paid =
    onPlan?.status === 'charged' ? onPlan : attempts.find(({ status }) => status === 'authorised');
  if (plan.is_card_stored || paid === undefined) return plan;
  return { ...plan, card: { brand: paid.card_brand, last4: paid.card_last4 } };
}

function declineOf({ decline_reason, may_retry }: PaymentAttempt): PayPage['decline'] {
  return decline_reason === null ? null : { reason: decline_reason, may_retry: may_retry ?? true };
}

function returnUrl(checkout: Checkout, status: PayPage['status']): string | null {
  switch (status) {
    case 'successful':
      return checkout.success_url;
    case 'cancelled':
    case 'expired':
    case 'invalid_payload':
      return checkout.cancel_url;
    default:
      return null;
  }
}
