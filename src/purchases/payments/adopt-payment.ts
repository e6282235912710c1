import type { HeldCard, PaymentState } from '#gateway/gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { released } from '#platform/database/due-work.sql.ts';
import { CannotAdopt } from '#platform/shared/cannot-adopt.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { completeCheckout } from '#purchases/checkouts/end-checkout.ts';
import { findNumber } from '#purchases/instalments/adopt-payment.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import { scheduleInstalments } from '#purchases/instalments/schedule-instalments.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { insertAttempt, listAttempts, moveAttempt } from './payment-attempt.sql.ts';
import { attemptId, isInFlight, mayFinishUntil } from './payment-attempt.ts';

/** A text in place of the consent that the shopper gave and the database lost. */
const lostConsent = 'lost with the database';

/**
 * Records that a shopper paid a checkout before the database was restored (decision 0098), in a
 * transaction that holds the checkout's lock. The merchant is told again.
 */
export async function adoptPurchase(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  paid: {
    id: string;
    amount: number;
    number_of_payments: number;
    customer_ref: string;
    created_at: Timestamp;
    state: Extract<PaymentState, { outcome: 'authorised' | 'captured' }>;
  },
): Promise<void> {
  const { merchant_id, id: checkout_id, currency } = checkout;
  const { id, number_of_payments, customer_ref, state } = paid;
  if (checkout.status !== 'received') throw new CannotAdopt(`the checkout is ${checkout.status}`);
  const number = findNumber((one) => attemptId(checkout_id, one) === id);
  if (number === null) throw new CannotAdopt('its attempt is not one of ours');
  const attempts = (await listAttempts(db, merchant_id, checkout_id)).filter(isInFlight);
  // The attempt itself may be in flight in the backup.
  const known = attempts.find((one) => one.id === id) ?? null;
  if (attempts.length > (known ? 1 : 0)) throw new CannotAdopt('the shopper is paying now');
  // The gateway's times have whole seconds.
  const [began, ends] = [Temporal.Instant.from(checkout.created_at), checkout.expires_at];
  const created = Temporal.Instant.from(paid.created_at);
  const at = Temporal.Instant.compare(created, began) < 0 ? began : created;
  if (Temporal.Instant.compare(at, mayFinishUntil(ends)) > 0) {
    throw new CannotAdopt('it was made after the time of the checkout');
  }
  const payments = planPayments(checkout.amount, number_of_payments, merchant.localDate(at));
  const [first] = payments;
  // A refund may have made the capture smaller. The caller compares the captured amount.
  const isFirst = first && (state.outcome === 'captured' || first.amount === paid.amount);
  if (!isFirst || !checkout.terms.includes(number_of_payments)) {
    throw new CannotAdopt('its amount is not that of the first payment');
  }
  const { card } = state;
  if (number_of_payments > 1 && card.card_ref === null) throw new CannotAdopt('no card is stored');
  const lost = number_of_payments > 1 ? { version: lostConsent, payments } : null;
  const consent = known ? known.consent : lost;
  const key = { merchant_id, id };
  if (!known) {
    await insertAttempt(db, {
      ...{ merchant_id, id, checkout_id, number, number_of_payments, currency, customer_ref },
      status: 'starting',
      amount: first.amount,
      sealed_card_token: null,
      consent,
      created_at: timestamp(at),
      due_at: timestamp(at),
      lease: null,
      leased_until: null,
      written_id: deps.random.uuid(),
    });
  }
  const isHeld = state.outcome === 'authorised';
  await moveAttempt(db, key, ['starting', 'challenged'], {
    ...released,
    status: 'authorised',
    sealed_card_token: null,
    customer_ref,
    payment_ref: state.payment_ref,
    card_ref: card.card_ref,
    card_brand: card.brand,
    card_last4: card.last4,
    card_expires: card.expires,
    authentication: isHeld && state.authentication ? JSON.stringify(state.authentication) : null,
    capture_before: isHeld ? state.capture_before : null,
    asked_at: timestamp(at),
    settled_at: timestamp(at),
    due_at: null,
  });
  const done = await completeCheckout(deps, db, checkout, number_of_payments, timestamp(at));
  if (done === null) throw new CannotAdopt('the checkout has ended');
  const stored_card = consent && {
    ...(card as HeldCard & { card_ref: string }),
    customer_ref,
    consent,
  };
  const { payment_ref } = state;
  await scheduleInstalments(deps, db, merchant, done, { payment_ref, stored_card });
}
