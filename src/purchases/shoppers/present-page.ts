import type { CardSession } from '#gateway/gateway.ts';
import { findCardEntry, type Gateways } from '#gateway/gateways.ts';
import { preselectedTerm } from '#merchants/merchant.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import type { Language } from '#platform/shared/language.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { consentVersion } from '#platform/shared/words/consent-version.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { isAwaited } from '#purchases/callbacks/delivery/answer.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { linkUrls } from '#purchases/checkouts/link-token.ts';
import type { ConversationEntry } from '#purchases/conversations/conversation.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import {
  cardTokenContext,
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

type PresentDeps = {
  clock: Clock;
  gateways: Gateways;
  environment: Environment;
  page: HostedPageSettings;
  sendsMessages: boolean;
  sealing: Sealing;
  baseUrl: string;
};

export function presentPage(deps: PresentDeps, opened: OpenedPage, language: Language): PayPage {
  const { merchant, checkout, callback, plan, session, conversation } = opened;
  const attempts = opened.attempts.filter(isFirstPayment);
  const onPlan = opened.attempts.find(isOnPlan) ?? null;
  const now = merchant.now();
  const purchaseDate = merchant.localDate(
    checkout.completed_at === null ? now : Temporal.Instant.from(checkout.completed_at),
  );
  const inFlight = attempts.find(isInFlight);
  const card_entry = findCardEntry(deps.gateways, checkout.gateway);
  const [latest] = attempts;
  const isDelivering = callback !== null && isFirstDelivery(callback, now);
  const status = isDelivering ? 'paying' : statusOf(checkout, attempts, inFlight, now);
  return {
    status,
    test_mode: deps.environment === 'sandbox',
    mailbox_url: deps.page.mailboxUrl,
    merchant_name: merchant.name,
    merchant: {
      contact: merchant.contact,
      address: merchant.address,
      vat_number: merchant.vat_number,
      logo: merchant.logo,
    },
    amount: checkout.amount,
    currency: checkout.currency,
    language,
    ...{ locale: merchant.territory.locale, time_zone: merchant.territory.time_zone },
    client_reference_id: checkout.client_reference_id,
    line_items: checkout.line_items,
    plans: checkout.terms.map((number_of_payments) => ({
      number_of_payments,
      payments: planPayments(checkout.amount, number_of_payments, purchaseDate),
    })),
    no_fees: merchant.no_fees,
    number_of_payments:
      checkout.number_of_payments ??
      latest?.number_of_payments ??
      preselectedTerm(merchant, checkout.terms),
    decline: status === 'open' && latest ? declineOf(latest) : null,
    paused: opened.paused || (card_entry === null && (plan === null || plan.outstanding > 0)),
    plan: plan && presentCard(session === null ? withoutReasons(plan) : plan, attempts, onPlan),
    sends_links: deps.sendsMessages,
    session,
    conversation: conversation && presentConversation(conversation, merchant.name),
    answer_days: deps.page.answerDays,
    attempt: presentPlanAttempt(onPlan, session !== null, sessionOf(deps.sealing, onPlan), now),
    challenge_url: status === 'challenge' ? (inFlight?.challenge_url ?? null) : null,
    card_session: status === 'begun' ? sessionOf(deps.sealing, inFlight) : null,
    return_url: callback?.redirect_url ?? returnUrl(deps, checkout, status),
    may_cancel: status === 'expired' && isOpen(checkout, now),
    expires_at: checkout.expires_at,
    card_entry,
    gateway: checkout.gateway,
    card_brands: deps.page.cardBrands,
    operator: deps.page.operator,
    consent_version: consentVersion(language),
  };
}

/** Answers are shown under the merchant's name, not under that of the person who wrote them. */
function presentConversation(
  entries: ConversationEntry[],
  merchant_name: string,
): PayPage['conversation'] {
  return {
    entries: entries.map(({ author, text, at }) => ({
      name: author === 'shopper' ? null : merchant_name,
      text,
      at,
    })),
    is_answered: entries.at(-1)?.author === 'person',
  };
}

/**
 * Whether the first delivery of the callback is in flight. Its answer may say where the shopper
 * goes.
 */
const isFirstDelivery = (
  callback: Pick<Callback, 'status' | 'attempts' | 'created_at'>,
  now: Temporal.Instant,
): boolean => callback.status === 'pending' && callback.attempts === 0 && isAwaited(callback, now);

function statusOf(
  checkout: Checkout,
  attempts: PaymentAttempt[],
  inFlight: PaymentAttempt | undefined,
  now: Temporal.Instant,
): PayPage['status'] {
  if (checkout.status !== 'received') return checkout.status;
  if (inFlight?.status === 'begun') return 'begun';
  if (inFlight) return inFlight.status === 'challenged' ? 'challenge' : 'paying';
  return isOpen(checkout, now) && mayTryAgain(attempts) ? 'open' : 'expired';
}

/** The session in which the shopper enters the card; null if none is open. */
function sessionOf(
  sealing: Sealing,
  attempt: PaymentAttempt | null | undefined,
): CardSession | null {
  if (attempt?.status !== 'begun' || attempt.sealed_card_token === null) return null;
  return { client_secret: sealing.open(attempt.sealed_card_token, cardTokenContext(attempt)) };
}

/**
 * A once-off payment stores no card, but its attempt shows which card paid. If the hold lapsed, the
 * shopper may have paid later with another card.
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

function returnUrl(
  deps: PresentDeps,
  checkout: Checkout,
  status: PayPage['status'],
): string | null {
  const { merchant_id, payment_link_id } = checkout;
  switch (status) {
    case 'successful':
      return checkout.success_url;
    case 'expired':
      // The shopper begins again on the page of the payment link, if there is one.
      return payment_link_id === null
        ? checkout.cancel_url
        : linkUrls(deps, { merchant_id, id: payment_link_id }).url;
    case 'cancelled':
    case 'invalid_payload':
      return checkout.cancel_url;
    default:
      return null;
  }
}
