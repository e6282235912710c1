import type { Static } from 'typebox';
import { amountProblem, type Context, descriptorProblem } from '../books/context.ts';
import { readEnteredCard } from '../books/entered-card.ts';
import { cancelIntent, captureIntent, confirmIntent } from '../books/payments.ts';
import { cancelSetup, confirmSetup } from '../books/setups.ts';
import { type Refusal, refusalNamed } from '../cards.ts';
import { makePaymentMethod } from '../objects/card.ts';
import { cardError } from '../objects/card-error.ts';
import { newId } from '../objects/made.ts';
import { makePaymentIntent } from '../objects/payment-intent.ts';
import { makeSetupIntent } from '../objects/setup-intent.ts';
import type { Kept } from '../store.ts';
import { usableCustomer } from './customers.ts';
import {
  amountTooLarge,
  HyperswitchError,
  invalidValue,
  LateRefusal,
  missing,
  UnreadableBody,
  wrongStatus,
} from './errors.ts';
import {
  findPayment,
  isExpired,
  isSetup,
  type KeptPayment,
  presentListed,
  presentPayment,
  statusOf,
} from './payment.ts';
import type * as schemas from './schemas.ts';

type NewPayment = Static<typeof schemas.createPayment>;
type ChangedPayment = Static<typeof schemas.updatePayment>;

const sessionSeconds = 15 * 60;
const currencies = new Set(Intl.supportedValuesOf('currency'));

const missingParam = (name: string) =>
  new HyperswitchError(400, 'IR_04', `Missing required param: ${name}`);

function openedPayment(context: Context, id: string): KeptPayment {
  const payment = findPayment(context, id);
  if (payment === null) throw missing('Payment');
  return payment;
}

/** A caller with the publishable key must present the payment's secret. */
export type Caller = { isPublishable: boolean; client_secret: string | null | undefined };

function checkSecret(context: Context, payment: KeptPayment, caller: Caller): void {
  const { client_secret: given } = caller;
  if (given === undefined || given === null) {
    if (!caller.isPublishable) return;
    throw new HyperswitchError(400, 'IR_08', 'client_secret was not provided');
  }
  if (given !== payment.object.client_secret) {
    throw new HyperswitchError(
      400,
      'IR_09',
      'The client_secret provided does not match the client_secret associated with the Payment',
    );
  }
  if (isExpired(context, payment)) {
    throw new HyperswitchError(400, 'IR_08', 'The provided client_secret has expired');
  }
}

/**
 * Checks in the real server's order, which looks for the stored card before it compares ids.
 * Returns the card that is charged at once, or null.
 */
function checkNewPayment(context: Context, given: NewPayment): Kept<'payment_method'> | null {
  if (!currencies.has(given.currency)) throw new UnreadableBody('currency: unknown variant');
  checkMembers(context, given, given.amount, given.customer_id ?? null);
  if (given.confirm && !(given.off_session && given.recurring_details)) {
    throw missingParam('recurring_details');
  }
  const method =
    given.confirm && given.recurring_details
      ? storedCard(context, given.recurring_details.data, given.customer_id)
      : null;
  const id = given.payment_id ?? '';
  if (id !== '' && findPayment(context, id) !== null) {
    throw new HyperswitchError(
      400,
      'HE_01',
      'The payment with the specified payment_id already exists in our records',
      { reason: `PaymentId("${id}") already exists` },
    );
  }
  const customer = given.customer_id ? usableCustomer(context, given.customer_id) : null;
  if (given.setup_future_usage && customer === null) throw missingParam('customer_id');
  if (given.amount === 0 && given.setup_future_usage !== 'off_session')
    throw invalidValue('amount');
  return method;
}

/** Checks the members that may change until the payment is confirmed. */
function checkMembers(
  context: Context,
  given: ChangedPayment,
  amount: number,
  customer: string | null,
): void {
  if (amount > 0 && amountProblem(context, amount, customer) === 'too_large') {
    throw amountTooLarge();
  }
  const suffix = given.billing_descriptor?.statement_descriptor_suffix ?? null;
  if (suffix !== null && descriptorProblem(context, suffix) !== null) {
    throw invalidValue('billing_descriptor');
  }
  const metadata = Object.entries(given.metadata ?? {});
  if (metadata.length > 50 || metadata.some(([, value]) => String(value).length > 500)) {
    throw invalidValue('metadata');
  }
}

const texts = (metadata: Record<string, unknown> | null | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata ?? {}).map(([name, value]) => [name, String(value)]));

export function createPayment(context: Context, given: NewPayment): object {
  const method = checkNewPayment(context, given);
  const payment = makePayment(context, given);
  payment.hidden.hyperswitch = {
    expires_at: context.now + (given.session_expiry ?? sessionSeconds),
    currency: given.currency,
    authentication_type: given.authentication_type ?? 'three_ds',
    off_session: given.off_session === true,
    mit_category: given.mit_category ?? null,
    isMandate: Boolean(given.mandate_data),
  };
  savePayment(context, payment);
  if (method !== null && !isSetup(payment)) {
    if (!context.account.hasAgreements) throw noAcquirer();
    confirmIntent(asAcquirer(context, payment), payment, method, true);
  }
  return presentPayment(context, payment);
}

/** Hyperswitch chooses an acquirer after it has saved the payment. */
const noAcquirer = () =>
  new LateRefusal(
    400,
    'IR_39',
    'No eligible connector was found for the current payment method configuration',
  );

/** The acquirer, not Hyperswitch itself, declines an amount that is too small. */
function asAcquirer(context: Context, { object }: Kept<'payment_intent'>): Context {
  const isSmall = object.amount < context.account.amountMin;
  return isSmall ? { ...context, decline: refusalNamed('amount_too_small') } : context;
}

function makePayment(context: Context, given: NewPayment): KeptPayment {
  const isThreeDs = given.authentication_type !== 'no_three_ds';
  const common = {
    id: given.payment_id ?? newId('pay').slice(0, 24).padEnd(30, '0'),
    customer: given.customer_id ?? null,
    description: given.description ?? null,
    metadata: texts(given.metadata),
    payment_method: null,
    return_url: given.return_url ?? null,
    card_options: isThreeDs ? { request_three_d_secure: 'any' } : {},
  };
  if (given.amount === 0) return makeSetupIntent(context, { ...common, usage: 'off_session' });
  return makePaymentIntent(context, {
    ...common,
    amount: given.amount,
    currency: given.currency.toLowerCase(),
    capture_method: given.capture_method === 'manual' ? 'manual' : 'automatic_async',
    setup_future_usage: given.setup_future_usage ?? null,
    statement_descriptor_suffix: given.billing_descriptor?.statement_descriptor_suffix ?? null,
    receipt_email: null,
  });
}

function savePayment({ store }: Context, payment: KeptPayment): void {
  if (isSetup(payment)) store.save('setup_intent', payment);
  else store.save('payment_intent', payment);
}

/** A card that was stored for the customer and has not been removed since. */
function storedCard(
  { store }: Context,
  id: string,
  customer: string | null | undefined,
): Kept<'payment_method'> {
  const method = store.find('payment_method', id);
  const isTheirs = method !== null && customer && method.object.customer === customer;
  if (!isTheirs) throw missing('Payment method');
  return method;
}

/** Changes a payment for which no card has been entered yet. */
export function updatePayment(context: Context, given: ChangedPayment, id: string): object {
  const payment = openedPayment(context, id);
  const status = statusOf(payment);
  if (status !== 'requires_payment_method') throw wrongStatus('update', status);
  const customer = payment.object.customer === null ? null : String(payment.object.customer);
  checkMembers(context, given, given.amount ?? 0, customer);
  const { object } = payment;
  if (given.metadata) object.metadata = texts(given.metadata);
  if (given.description) object.description = given.description;
  if (given.return_url) payment.hidden.return_url = given.return_url;
  if (!isSetup(payment)) changeIntent(payment, given);
  else if (given.amount) throw invalidValue('amount');
  savePayment(context, payment);
  return presentPayment(context, payment);
}

function changeIntent({ object }: Kept<'payment_intent'>, given: ChangedPayment): void {
  if (given.amount === 0) throw invalidValue('amount');
  if (given.amount) object.amount = given.amount;
  if (given.currency) object.currency = given.currency.toLowerCase();
  if (given.setup_future_usage !== undefined) object.setup_future_usage = given.setup_future_usage;
  const suffix = given.billing_descriptor?.statement_descriptor_suffix;
  if (suffix) object.statement_descriptor_suffix = suffix;
}

/** The shopper's browser confirms the payment with the card that was entered. */
export function confirmPayment(
  context: Context,
  given: Static<typeof schemas.confirmPayment>,
  id: string,
  isPublishable: boolean,
): object {
  const payment = openedPayment(context, id);
  checkSecret(context, payment, { isPublishable, client_secret: given.client_secret });
  const status = statusOf(payment);
  if (status !== 'requires_payment_method') throw wrongStatus('confirm', status);
  const card = given.payment_method_data?.card;
  if (given.payment_method !== 'card' || !card) throw missingParam('payment_method_data');
  const storesCard = isSetup(payment) || payment.object.setup_future_usage === 'off_session';
  if (storesCard && !given.customer_acceptance) throw missingParam('customer_acceptance');
  if (given.return_url) payment.hidden.return_url = given.return_url;
  if (given.metadata) payment.object.metadata = texts(given.metadata);
  if (payment.hidden.return_url === null) {
    throw new HyperswitchError(
      404,
      'HE_03',
      'Return URL is not configured and not passed in payments request',
    );
  }
  const now = context.timeOf(payment.merchant);
  const exp_month = Number(card.card_exp_month);
  const exp_year = Number(card.card_exp_year.padStart(4, '20'));
  const entered = { number: card.card_number, exp_month, exp_year, cvc: card.card_cvc };
  const read = readEnteredCard(entered, now);
  if ('problem' in read) throw new UnreadableBody(`${read.problem.param}: ${read.problem.message}`);
  const made = { card: read.card.name, exp_month, exp_year };
  const method = makePaymentMethod({ merchant: payment.merchant, now }, made);
  if (isSetup(payment)) confirmSetup(context, payment, method);
  else confirmIntent(asAcquirer(context, payment), payment, method, false);
  return presentPayment(context, payment);
}

export function retrievePayment(context: Context, caller: Caller, id: string): object {
  const payment = openedPayment(context, id);
  if (caller.isPublishable) checkSecret(context, payment, caller);
  return presentPayment(context, payment);
}

export function capturePayment(
  context: Context,
  given: Static<typeof schemas.capturePayment>,
  id: string,
): object {
  const payment = openedPayment(context, id);
  const status = statusOf(payment);
  if (isSetup(payment) || status !== 'requires_capture') {
    throw new HyperswitchError(
      400,
      'IR_14',
      `This Payment could not be captured because it has a payment.status of ${status}. The expected state is requires_capture`,
    );
  }
  const amount = given.amount_to_capture ?? payment.object.amount_capturable;
  if (amount <= 0) {
    throw new HyperswitchError(
      422,
      'IR_05',
      'amount contains invalid data. Expected format is positive integer',
    );
  }
  if (amount > payment.object.amount_capturable) {
    throw new HyperswitchError(422, 'IR_06', 'amount_to_capture is greater than amount');
  }
  const refusal =
    amount < context.account.amountMin ? refusalNamed('amount_too_small') : context.decline;
  if (refusal === null) captureIntent(context, payment, amount);
  else failAtAcquirer(context, payment, refusal);
  return presentPayment(context, payment);
}

/**
 * The acquirer refused to capture or to void a hold. The real server answers with status 200 and
 * calls the payment failed, although its money may still be held.
 */
function failAtAcquirer(
  context: Context,
  payment: Kept<'payment_intent'>,
  refusal: Refusal,
  cancellation_reason: string | null = null,
): void {
  const { object } = payment;
  const method = context.store.find('payment_method', String(object.payment_method));
  if (method === null) throw new Error('a hold has a card');
  object.status = 'requires_payment_method';
  object.last_payment_error = cardError(refusal, method.object, String(object.latest_charge));
  object.cancellation_reason = cancellation_reason as typeof object.cancellation_reason;
  savePayment(context, payment);
}

/**
 * A payment that was captured in part is not listed: like the real server, the gateway lets the
 * caller cancel it, which changes only the status and returns no money.
 */
const uncancellable = ['failed', 'succeeded', 'cancelled'];

export function cancelPayment(
  context: Context,
  given: Static<typeof schemas.cancelPayment>,
  id: string,
): object {
  const payment = openedPayment(context, id);
  const status = statusOf(payment);
  if (uncancellable.includes(status)) throw wrongStatus('cancel', status);
  const reason = given.cancellation_reason ?? null;
  if (isSetup(payment)) cancelSetup(context, payment, reason);
  else if (status === 'requires_capture' && context.decline !== null) {
    failAtAcquirer(context, payment, context.decline, reason);
  } else cancelIntent(context, payment, reason);
  return presentPayment(context, payment);
}

/**
 * Lists payments, newest first. A cursor includes its own payment: `starting_after` lists the
 * newest of the payments created since then, and `ending_before` the older ones.
 */
export function listPayments(
  context: Context,
  given: { customer_id?: string; starting_after?: string; ending_before?: string; limit: number },
): object {
  const { customer_id: customer, starting_after: since, ending_before: until, limit } = given;
  for (const cursor of [since, until]) {
    if (cursor !== undefined && findPayment(context, cursor) === null) throw missing('Payment');
  }
  const data = context.store
    .payments({ customer, since, until, limit })
    .map(({ id }) => presentListed(context, openedPayment(context, id)));
  return { size: data.length, data };
}
