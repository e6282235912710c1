import { amountRefused } from '#gateway/amount-refused.ts';
import {
  type Charge,
  type Gateway,
  type MerchantTime,
  type PaymentState,
  type RefusedData,
  RequestRefused,
  type Statement,
} from '#gateway/gateway.ts';
import { statementPrefix } from '#gateway/settings.ts';
import { statementSuffix } from '#gateway/statement.ts';
import type { Payment } from './answers.ts';
import { codes, fail, type HyperswitchApi, isCode, refusesAmount } from './api.ts';
import { cardOf } from './card.ts';
import { paymentId } from './ids.ts';
import { fewAtOnce, listPage } from './lists.ts';
import { find, retrieve } from './look-up.ts';
import { describePayment, ownWords } from './own-words.ts';
import { paymentState, undecidedError } from './states.ts';

type Begin = Parameters<Gateway['begin']>[0];

type PaymentCalls = Pick<
  Gateway,
  'begin' | 'enteredCard' | 'charge' | 'payment' | 'findPayment' | 'listInstalmentPayments'
>;

/**
 * How long a shopper may take to enter a card. Their time for a checkout or on the plan page ends
 * first (decisions 0011 and 0085). A challenge that the shopper left ends soon after the session.
 */
const sessionSeconds = { checkout: 60 * 60, plan: 15 * 60 };

type NewPayment = {
  payment_id: string;
  amount: number;
  currency: string;
  setup_future_usage?: 'off_session';
} & Record<string, unknown>;

/**
 * Creates a payment under our id. The gateway accepts each id once. If it already has a payment
 * under this id, returns that one, provided that it matches. Throws `ApiError` for any other
 * refusal. The server looks at the amount and the stored card before it compares ids, so it may
 * refuse a request because of them although it has already made the payment.
 */
export async function create(
  api: HyperswitchApi,
  merchant: MerchantTime,
  body: NewPayment,
): Promise<Payment> {
  try {
    return await api.call<Payment>('POST', '/payments', { merchant, body });
  } catch (error) {
    const mayExist = isCode(error, codes.exists, codes.missing) || refusesAmount(error);
    const found = mayExist ? await find(api, merchant, body.payment_id) : null;
    if (found === null) throw error;
    // A payment that neither took nor holds money needs no comparison.
    if (['failed', 'cancelled', 'expired'].includes(found.status)) return found;
    if (found.amount !== body.amount || found.currency !== body.currency) {
      throw new RequestRefused(
        `the gateway made this payment for ${found.amount} cents, not ${body.amount} cents`,
      );
    }
    // Only the presence is compared: the server changes `off_session` to `on_session` if the
    // acquirer cannot charge the card later.
    if (Boolean(found.setup_future_usage) !== (body.setup_future_usage !== undefined)) {
      throw new RequestRefused('the gateway has a payment for this attempt with another term');
    }
    return found;
  }
}

/** The calls of the gateway's port that make payments and look them up. */
export function paymentCalls(api: HyperswitchApi): PaymentCalls {
  return {
    begin: (payment) => begin(api, payment),
    charge: (payment) => charge(api, payment),

    // The gateway reports nothing about a card before it is used.
    enteredCard: async () => cardOf({} as Payment),

    async payment(merchant, payment_ref) {
      return paymentState(await retrieve(api, merchant, payment_ref), merchant.now);
    },

    async findPayment(merchant, { attempt_id }) {
      const found = await find(api, merchant, paymentId(attempt_id));
      return found && paymentState(found, merchant.now);
    },

    listInstalmentPayments: (merchant, wanted) => listInstalmentPayments(api, merchant, wanted),
  };
}

/** Lists contain all that we read about payments in these states. */
const completeInLists = [
  'requires_payment_method',
  'requires_confirmation',
  'cancelled',
  'expired',
];

async function listInstalmentPayments(
  api: HyperswitchApi,
  merchant: MerchantTime,
  wanted: Parameters<Gateway['listInstalmentPayments']>[1],
): ReturnType<Gateway['listInstalmentPayments']> {
  const listed = (await listAll(api, merchant, wanted.customer_ref)).filter((payment) => {
    const { checkout_id, instalments } = ownWords(payment);
    if (checkout_id !== wanted.checkout_id || payment.amount === 0) return false;
    // A shopper may have paid several instalments at once.
    return wanted.instalments.some((number) => instalments.includes(number));
  });
  return await fewAtOnce(listed, async (payment) => {
    const { attempt_id } = ownWords(payment);
    const known = completeInLists.includes(payment.status)
      ? payment
      : await retrieve(api, merchant, payment.payment_id);
    return { ...paymentState(known, merchant.now), attempt_id };
  });
}

async function listAll(
  api: HyperswitchApi,
  merchant: MerchantTime,
  customer_id: string,
): Promise<Payment[]> {
  const all: Payment[] = [];
  let after: string | null = null;
  do {
    const page = await listPage(api, after, { customer_id, merchant });
    all.push(...page.data);
    after = page.next;
  } while (after !== null);
  return all;
}

/**
 * Begins a payment. The shopper's browser confirms it with the card. A stored card is charged at
 * once, because only the gateway's own widget could show it to the shopper.
 */
async function begin(api: HyperswitchApi, payment: Begin): Promise<PaymentState | RefusedData> {
  const { merchant, card, instalments, statement, capture } = payment;
  if (card !== null && 'card_token' in card) {
    throw new RequestRefused('the gateway does not accept card tokens');
  }
  const isHeld = capture === 'later';
  try {
    const made = await create(api, merchant, {
      payment_id: paymentId(payment.attempt_id),
      amount: payment.amount,
      currency: payment.currency,
      ...(card === null
        ? withShopper(payment, isHeld ? 'checkout' : 'plan')
        : withStored(payment.customer_ref, card.card_ref)),
      capture_method: isHeld ? 'manual' : 'automatic',
      ...(payment.store_card && { setup_future_usage: 'off_session' as const }),
      ...words(api, { ...statement, instalments }, !isHeld),
      metadata: { checkout_id: payment.checkout_id, attempt_id: payment.attempt_id },
    });
    return paymentState(made, merchant.now);
  } catch (error) {
    if (card !== null) return await declinedForGood(api, merchant, card.card_ref, error);
    if (refusesAmount(error)) return { outcome: 'refused', detail: `amount ${error.code}` };
    fail(error);
  }
}

/** How a card is used while the shopper is present: their bank authenticates them. */
export const withShopper = (
  { customer_ref, return_url }: { customer_ref: string; return_url: string },
  where: keyof typeof sessionSeconds,
) => ({
  confirm: false,
  customer_id: customer_ref,
  authentication_type: 'three_ds',
  allowed_payment_method_types: ['credit', 'debit'],
  session_expiry: sessionSeconds[where],
  return_url,
});

/** The stored card is charged under the agreement that the shopper made with the first payment. */
const withStored = (customer_id: string, card_ref: string) => ({
  confirm: true,
  off_session: true,
  customer_id,
  recurring_details: { type: 'payment_method_id', data: card_ref },
  mit_category: 'installment',
});

/**
 * The decline of a charge that can never succeed: the stored card is gone, or the gateway refuses
 * the amount. The server also says that the card is missing if the operator's own settings are, so
 * the card is looked up.
 */
async function declinedForGood(
  api: HyperswitchApi,
  merchant: MerchantTime,
  card_ref: string,
  error: unknown,
): Promise<Extract<Charge, { outcome: 'declined' }>> {
  const isGone = isCode(error, codes.missing) && !(await hasCard(api, merchant, card_ref));
  if (!isGone && !refusesAmount(error)) fail(error);
  const gone = { reason: 'processing_error', may_retry: false, card_key: null } as const;
  return { outcome: 'declined', payment_ref: null, decline: isGone ? gone : amountRefused };
}

async function hasCard(
  api: HyperswitchApi,
  merchant: MerchantTime,
  card_ref: string,
): Promise<boolean> {
  try {
    await api.call('GET', `/payment_methods/${encodeURIComponent(card_ref)}`, { merchant });
    return true;
  } catch (error) {
    return isCode(error, codes.missing, codes.redacted) ? false : fail(error);
  }
}

async function charge(
  api: HyperswitchApi,
  payment: Parameters<Gateway['charge']>[0],
): Promise<Charge> {
  const { merchant, statement } = payment;
  let made: Payment;
  try {
    made = await create(api, merchant, {
      payment_id: paymentId(payment.attempt_id),
      amount: payment.amount,
      currency: payment.currency,
      ...withStored(payment.customer_ref, payment.card_ref),
      ...words(api, { ...statement, instalments: [payment.instalment] }, false),
      metadata: { checkout_id: payment.checkout_id, attempt_id: payment.attempt_id },
    });
  } catch (error) {
    return await declinedForGood(api, merchant, payment.card_ref, error);
  }
  const state = paymentState(made, merchant.now);
  if (state.outcome === 'captured') {
    if (state.amount !== payment.amount) {
      throw new RequestRefused(
        `the gateway charged ${state.amount} cents instead of ${payment.amount} cents`,
      );
    }
    return { outcome: 'charged', payment_ref: state.payment_ref, scheme: state.scheme };
  }
  if (state.outcome === 'declined') return state;
  throw undecidedError('a charge without the shopper', made);
}

/** Describes a payment on statements and in the gateway's records. */
function words({ settings }: HyperswitchApi, statement: Statement, isOnPlan: boolean) {
  const prefix = statementPrefix(settings);
  const statement_descriptor_suffix = statementSuffix(prefix, statement.merchant_name, statement);
  return {
    billing_descriptor: { statement_descriptor_suffix },
    description: describePayment(statement, isOnPlan),
  };
}
