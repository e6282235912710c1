import { cardToStore, type HeldCard, type PaymentState } from '#gateway/gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { released } from '#platform/database/due-work.sql.ts';
import { writeTogether } from '#platform/database/write-together.ts';
import { CannotRecord } from '#platform/shared/cannot-record.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { completeCheckout } from '#purchases/checkouts/end-checkout.ts';
import { listLastCollections } from '#purchases/instalments/collection.sql.ts';
import { lockInstalments } from '#purchases/instalments/instalment.sql.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import { findNumber } from '#purchases/instalments/record-lost-payment.ts';
import { scheduleInstalments } from '#purchases/instalments/schedule-instalments.ts';
import {
  collectShopperPayment,
  openShopperPayment,
} from '#purchases/instalments/shopper-payment.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { insertAttempt, listAttempts, moveAttempt } from './payment-attempt.sql.ts';
import {
  type AttemptPurpose,
  attemptId,
  isInFlight,
  isOver,
  live,
  type PaymentAttempt,
} from './payment-attempt.ts';

/** The number of the attempt that has this id; null if no attempt has it. */
export const findAttemptNumber = (purpose: AttemptPurpose, checkout_id: string, id: string) =>
  findNumber((number) => attemptId({ purpose, checkout_id, number }) === id);

/** Stands for the consent that the shopper gave and the database lost. */
const lostConsent = 'lost with the database';

type PaidFirst = {
  id: string;
  amount: number;
  number_of_payments: number;
  customer_ref: string;
  created_at: Timestamp;
  state: Extract<PaymentState, { outcome: 'authorised' | 'captured' }>;
};

/**
 * Records that a shopper paid a checkout before the database was restored (decision 0098), in a
 * transaction that holds the checkout's lock. The merchant gets the callback again.
 */
export async function recordLostFirstPayment(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  paid: PaidFirst,
): Promise<void> {
  const { id, number_of_payments, customer_ref, state } = paid;
  const { card, payment_ref, authentication, scheme } = state;
  const { known, number, at, payments } = await checkFirstPayment(db, merchant, checkout, paid);
  const lost = number_of_payments > 1 ? { version: lostConsent, payments } : null;
  const consent = known ? known.consent : lost;
  const isHeld = state.outcome === 'authorised';
  const settled = {
    ...released,
    status: 'authorised' as const,
    sealed_card_token: null,
    sealed_network: null,
    challenge_url: null,
    customer_ref,
    payment_ref,
    card_ref: card.card_ref,
    card_brand: card.brand,
    card_last4: card.last4,
    card_expires: card.expires,
    capture_before: isHeld ? state.capture_before : null,
    asked_at: at,
    settled_at: at,
    due_at: null,
  };
  const { merchant_id, id: checkout_id, gateway, currency } = checkout;
  if (known) await moveAttempt(db, known, { ...settled, authentication, scheme }, live);
  else {
    await insertAttempt(db, {
      ...{
        ...settled,
        merchant_id,
        id,
        checkout_id,
        gateway,
        number,
        number_of_payments,
        currency,
      },
      purpose: 'first_payment',
      instalments: [1],
      amount: payments[0]?.amount ?? 0,
      uses_stored_card: false,
      consent: consent && JSON.stringify(consent),
      authentication: authentication && JSON.stringify(authentication),
      scheme: scheme && JSON.stringify(scheme),
      created_at: at,
      written_id: deps.random.uuid(),
    });
  }
  const done = completeCheckout(deps, checkout, number_of_payments, at, null);
  const stored_card = consent && {
    ...cardToStore(card as HeldCard & { card_ref: string }),
    customer_ref,
    consent,
  };
  const plan = scheduleInstalments(deps, merchant, done.checkout, { payment_ref, stored_card });
  await writeTogether(db, { ...done.writes, ...plan });
}

async function checkFirstPayment(
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  { id, amount, number_of_payments, created_at, state }: PaidFirst,
) {
  const { merchant_id, id: checkout_id } = checkout;
  if (checkout.status !== 'received') throw new CannotRecord(`the checkout is ${checkout.status}`);
  const number = findAttemptNumber('first_payment', checkout_id, id);
  if (number === null) throw new CannotRecord('its attempt is not one of ours');
  const inFlight = (await listAttempts(db, { merchant_id, checkout_id })).filter(isInFlight);
  // The attempt itself may still be in flight in the backup.
  const known: PaymentAttempt | null = inFlight.find((one) => one.id === id) ?? null;
  if (inFlight.length > (known ? 1 : 0)) throw new CannotRecord('the shopper is paying now');
  // The gateway's times are in whole seconds, so a payment may seem to be older than its checkout.
  const began = Temporal.Instant.from(checkout.created_at);
  const created = Temporal.Instant.from(created_at);
  const at = Temporal.Instant.compare(created, began) < 0 ? began : created;
  if (isOver({ purpose: 'first_payment', created_at }, checkout, at)) {
    throw new CannotRecord('it was made after the checkout had expired');
  }
  const payments = planPayments(checkout.amount, number_of_payments, merchant.localDate(at));
  const [first] = payments;
  // A refund may have reduced the capture. The caller compares the captured amount.
  const isFirst = first && (state.outcome === 'captured' || first.amount === amount);
  if (!isFirst || !checkout.terms.includes(number_of_payments)) {
    throw new CannotRecord('its amount is not that of the first payment');
  }
  if (number_of_payments > 1 && state.card.card_ref === null) {
    throw new CannotRecord('no card is stored');
  }
  return { known, number, at: timestamp(at), payments };
}

/**
 * Records what a shopper paid on the plan page before the database was restored (decision 0098), in
 * a transaction that holds the checkout's lock. A card that the shopper stored with this payment is
 * not recorded, because the consent was lost.
 */
export async function recordLostPlanPayment(
  deps: QueueDeps,
  db: Handle,
  checkout: Checkout,
  paid: {
    id: string;
    number: number;
    instalments: number[];
    amount: number;
    payment_ref: string;
    customer_ref: string;
    at: Timestamp;
    /** Null if the gateway reports nothing more about the payment. */
    state: Pick<PaidFirst['state'], 'authentication' | 'scheme'> | null;
  },
): Promise<void> {
  const { merchant_id, id: checkout_id, gateway, currency, number_of_payments } = checkout;
  const key = { merchant_id, checkout_id };
  const { id, number, instalments, amount, payment_ref, customer_ref, at, state } = paid;
  const attempts = await listAttempts(db, key);
  if (attempts.some(isInFlight)) throw new CannotRecord('the shopper is paying now');
  const payments = (await lockInstalments(db, key)).filter((one) =>
    instalments.includes(one.number),
  );
  const arePayable = payments.every(
    ({ status, paused }) => (status === 'scheduled' || status === 'overdue') && !paused,
  );
  if (payments.length !== instalments.length || !arePayable) {
    throw new CannotRecord('the payments that it covers cannot be paid now');
  }
  const sum = payments.reduce((total, one) => total + one.amount - one.reduced, 0);
  if (sum !== amount) throw new CannotRecord(`the payments that it covers sum to ${sum} cents`);
  const collections = await listLastCollections(db, merchant_id, [checkout_id]);
  if (collections.some((one) => one.status === 'open' && instalments.includes(one.instalment))) {
    throw new CannotRecord('a payment that it covers is being collected');
  }
  const attempt = await insertAttempt(db, {
    ...{ ...key, gateway, currency, id, number, instalments, amount, customer_ref, payment_ref },
    number_of_payments: number_of_payments ?? 1,
    purpose: 'plan_payment',
    status: 'charged',
    uses_stored_card: true,
    authentication: state?.authentication ? JSON.stringify(state.authentication) : null,
    scheme: state?.scheme ? JSON.stringify(state.scheme) : null,
    created_at: at,
    asked_at: at,
    settled_at: at,
    written_id: deps.random.uuid(),
  });
  const card = { customer_ref, card_ref: null, card_key: null };
  await openShopperPayment(db, attempt, payments, card, { at, asked_at: at });
  await collectShopperPayment(deps, db, attempt, payment_ref, at);
}
