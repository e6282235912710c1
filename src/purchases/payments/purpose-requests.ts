import {
  type CardVerification,
  cardKeyOf,
  type Gateway,
  type MerchantTime,
  OutcomeUnknown,
  type PaymentState,
  type RefusedData,
  RequestRefused,
  type Statement,
} from '#gateway/gateway.ts';
import { isUnconfirmed, voidUnconfirmed } from '#gateway/void-unconfirmed.ts';
import type { Handle } from '#platform/database/database.ts';
import { leaveOutUsed } from '#purchases/instalments/unused-payments.ts';
import type { Answer } from './choose-step.ts';
import { type AttemptPurpose, type PaymentAttempt, requestKey } from './payment-attempt.ts';

// The calls to the gateway for an attempt of each purpose.

export type Ask = { gateway: Gateway; time: MerchantTime; attempt: PaymentAttempt };

type Requests = {
  /**
   * Finds what the gateway did for the same payments, or under the id of this attempt, before a
   * database was lost and restored; null if the request may be sent.
   */
  findEarlier(ask: Ask, customer_ref: string, db: Handle): Promise<Answer | null>;
  send(
    ask: Ask,
    given: {
      customer_ref: string;
      card_token: string | null;
      return_url: string;
      statement: Statement;
    },
  ): Promise<Answer>;
  lookUp(ask: Ask, payment_ref: string): Promise<Answer>;
  /** Looks up by the attempt's id what the gateway has; null if it has nothing. */
  find(ask: Ask, customer_ref: string): Promise<Answer | null>;
  end(ask: Ask, payment_ref: string): Promise<Answer>;
};

/** A hold and a charge are both payments at the gateway; `read` distinguishes them. */
const ofPayments = (read: (ask: Ask, state: PaymentState) => Answer | Promise<Answer>) => ({
  async lookUp(ask: Ask, payment_ref: string) {
    return await read(ask, await ask.gateway.payment(ask.time, payment_ref));
  },
  async find(ask: Ask, customer_ref: string) {
    const { gateway, time, attempt } = ask;
    const state = await gateway.findPayment(time, { customer_ref, attempt_id: attempt.id });
    return state && (await read(ask, state));
  },
  async end(ask: Ask, payment_ref: string): Promise<Answer> {
    const { gateway, time } = ask;
    const ended = await gateway.void({ key: voidKey(ask), merchant: time, payment_ref });
    if (ended.outcome === 'voided') {
      const { decline } = ended;
      return decline
        ? { outcome: 'declined', payment_ref, decline }
        : { outcome: 'voided', payment_ref };
    }
    return await read(ask, await gateway.payment(time, payment_ref));
  },
});

const voidKey = ({ attempt }: Ask) => `${requestKey(attempt)}:void`;

const firstPayment: Requests = {
  ...ofPayments(held),
  // No look-up is needed, because a hold takes no money. A hold that a restored database lost is
  // recorded as the purchase, or blocks its checkout (decision 0098).
  findEarlier: async () => null,
  async send(ask, { card_token, ...given }) {
    const { gateway, time, attempt } = ask;
    const { id: attempt_id, checkout_id, amount, currency, number_of_payments } = attempt;
    const begun = await gateway.begin({
      ...{ ...given, key: requestKey(attempt), merchant: time },
      ...{ checkout_id, attempt_id, amount, currency, instalments: [1], capture: 'later' },
      card: card_token === null ? null : { card_token },
      store_card: number_of_payments > 1,
    });
    return await held(ask, begun);
  },
};

async function held(ask: Ask, state: PaymentState | RefusedData): Promise<Answer> {
  switch (state.outcome) {
    case 'authorised':
      return ask.attempt.number_of_payments > 1 && state.card.card_ref === null
        ? await refuseCard(ask, state)
        : { ...state, outcome: 'done' };
    case 'captured':
      // Only the hold that is a checkout's outcome is captured, and by then its attempt has ended.
      throw new OutcomeUnknown('a captured first payment is not the outcome of its checkout');
    default:
      return state;
  }
}

/**
 * The card cannot be charged later, so its hold is voided, and the shopper must use another card.
 */
async function refuseCard(
  ask: Ask,
  { payment_ref, card }: Extract<PaymentState, { outcome: 'authorised' }>,
): Promise<Answer> {
  const ended = await firstPayment.end(ask, payment_ref);
  if (ended.outcome !== 'voided') return ended;
  const decline = { reason: 'generic', may_retry: false, card_key: cardKeyOf(card) } as const;
  return { outcome: 'declined', payment_ref, decline };
}

const planPayment: Requests = {
  ...ofPayments(paid),
  async findEarlier(ask, customer_ref, db) {
    const { gateway, time, attempt } = ask;
    const listed = await gateway.listInstalmentPayments(time, { ...attempt, customer_ref });
    const states = await leaveOutUsed(db, attempt, listed);
    const captured = states.filter((state) => state.outcome === 'captured');
    const [first] = captured;
    if (captured.length > 1) throw new RequestRefused('the payments were already paid, in parts');
    if (first !== undefined) return paid(ask, first);
    const others = states.filter(({ attempt_id }) => attempt_id !== attempt.id);
    if (others.some((state) => state.outcome === 'processing' && !isUnconfirmed(state))) {
      throw new OutcomeUnknown('another payment of the same instalments is processing');
    }
    // The shopper could still approve these payments, so they are voided.
    await voidUnconfirmed(gateway, time, others);
    const own = await gateway.findPayment(time, { customer_ref, attempt_id: attempt.id });
    if (own === null) return null;
    if (own.outcome === 'declined' || own.outcome === 'voided') return own;
    // The answer to our own request was lost, so the request is sent again under its key.
    if (attempt.asked_at !== null) return null;
    // An earlier attempt was lost when the database was restored, and this attempt has got the
    // same number and id.
    if (own.outcome === 'captured') {
      throw new RequestRefused('the attempt paid other payments before the database was restored');
    }
    const ended = await planPayment.end(ask, own.payment_ref);
    if (ended.outcome !== 'challenge') return ended;
    throw new OutcomeUnknown('an earlier payment of the attempt may still be approved');
  },
  async send(ask, { card_token, ...given }) {
    const { gateway, time, attempt } = ask;
    const { id: attempt_id, checkout_id, instalments, amount, currency } = attempt;
    const { uses_stored_card, card_ref, consent } = attempt;
    const entered = card_token === null ? null : { card_token };
    if (uses_stored_card && card_ref === null) throw new RequestRefused('the attempt has no card');
    const begun = await gateway.begin({
      ...{ ...given, key: requestKey(attempt), merchant: time },
      ...{ checkout_id, attempt_id, instalments, amount, currency, capture: 'now' },
      card: uses_stored_card && card_ref !== null ? { card_ref } : entered,
      store_card: consent !== null,
    });
    return paid(ask, begun);
  },
};

function paid({ attempt: { amount } }: Ask, state: PaymentState | RefusedData): Answer {
  switch (state.outcome) {
    case 'captured':
      if (state.amount !== amount) {
        throw new RequestRefused(
          `the gateway took ${state.amount} cents for a payment of ${amount} cents`,
        );
      }
      return { ...state, outcome: 'done', capture_before: null };
    case 'authorised':
      throw new OutcomeUnknown('a payment that should be captured at once is held');
    case 'refused':
      throw new RequestRefused(`the gateway refused the payment (${state.detail})`);
    default:
      return state;
  }
}

const newCard: Requests = {
  // No look-up is needed: a card may be verified twice, because that takes no money.
  findEarlier: async () => null,
  async send({ gateway, time, attempt }, { customer_ref, card_token, return_url }) {
    const { id: attempt_id, checkout_id, currency } = attempt;
    const names = { key: requestKey(attempt), merchant: time, checkout_id, attempt_id };
    const card = { customer_ref, currency, card_token, return_url };
    return verified(await gateway.beginVerification({ ...names, ...card }));
  },
  async lookUp({ gateway, time }, payment_ref) {
    return verified(await gateway.cardVerification(time, payment_ref));
  },
  async find({ gateway, time, attempt }, customer_ref) {
    const name = { customer_ref, attempt_id: attempt.id };
    const state = await gateway.findCardVerification(time, name);
    return state && verified(state);
  },
  async end(ask, verification_ref) {
    const to = { key: voidKey(ask), merchant: ask.time, verification_ref };
    return verified(await ask.gateway.voidVerification(to));
  },
};

function verified(verification: CardVerification): Answer {
  const { verification_ref: payment_ref, ...state } = verification;
  return (
    state.outcome === 'verified'
      ? { ...state, payment_ref, outcome: 'done', capture_before: null }
      : { ...state, payment_ref }
  ) as Answer;
}

const requests: Record<AttemptPurpose, Requests> = {
  first_payment: firstPayment,
  plan_payment: planPayment,
  new_card: newCard,
};

export const requestsOf = ({ purpose }: PaymentAttempt) => requests[purpose];
