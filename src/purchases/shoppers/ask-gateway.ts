import {
  type Authentication,
  type CardVerification,
  type Decline,
  type Gateway,
  type HeldCard,
  type MerchantTime,
  OutcomeUnknown,
  type PaymentState,
  RequestRefused,
  type Statement,
} from '#gateway/gateway.ts';
import { isKeyRemembered, mayBeInFlight } from '#gateway/retry-times.ts';
import { voidChallenges } from '#gateway/void-challenges.ts';
import { type Merchant, statementOf } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import { moveAttemptAsked } from './shopper-attempt.sql.ts';
import { cardTokenContext, isOver, type ShopperAttempt } from './shopper-attempt.ts';

export type AskDeps = {
  database: Database;
  clock: Clock;
  gateway: Gateway;
  sealing: Sealing;
  baseUrl: string;
};

/** The gateway's answer about an attempt, at once or when it was asked later. */
export type Finding =
  /** The card was charged, or it is verified and stored. */
  | {
      outcome: 'done';
      payment_ref: string;
      card: HeldCard;
      /** Null if the bank was not asked. */
      authentication: Authentication | null;
    }
  | { outcome: 'challenge'; payment_ref: string; url: string }
  | { outcome: 'declined'; payment_ref: string | null; decline: Decline }
  | { outcome: 'processing'; payment_ref: string }
  | { outcome: 'voided'; payment_ref: string | null };

type Live = Extract<Finding, { outcome: 'challenge' | 'processing' }>;
const isLive = ({ outcome }: Finding) => outcome === 'challenge' || outcome === 'processing';

/**
 * Calls the gateway for a claimed attempt, as its status requires: sends the request (again under
 * the same key if an earlier one may have arrived), looks up what was sent, or ends what has run
 * out of time. Throws like the gateway.
 */
export async function askGateway(
  deps: AskDeps,
  merchant: Merchant,
  checkout: Checkout,
  attempt: ShopperAttempt,
): Promise<Finding> {
  const time = merchant.forGateway();
  const side = attempt.purpose === 'pay' ? payments : verifications;
  const { payment_ref } = attempt;
  if (payment_ref !== null && attempt.status === 'voiding') {
    return await side.end(deps.gateway, time, attempt, payment_ref);
  }
  const finding =
    payment_ref === null
      ? await sendOrFind(deps, merchant, checkout, attempt, side)
      : await side.lookUp(deps.gateway, time, attempt, payment_ref);
  const mustEnd = attempt.status === 'voiding' || isOver(attempt, merchant.now());
  // The bank must not be able to approve it tomorrow.
  return mustEnd && isLive(finding)
    ? await side.end(deps.gateway, time, attempt, (finding as Live).payment_ref)
    : finding;
}

/**
 * Asks the gateway about an attempt, without sending or ending anything. Null if the gateway does
 * not know it.
 */
export async function lookUpAct(
  gateway: Gateway,
  time: MerchantTime,
  attempt: ShopperAttempt,
): Promise<Finding | null> {
  const side = attempt.purpose === 'pay' ? payments : verifications;
  return attempt.payment_ref === null
    ? await side.find(gateway, time, attempt)
    : await side.lookUp(gateway, time, attempt, attempt.payment_ref);
}

/** Sends the request while the attempt is young. Later it only looks up what was sent. */
async function sendOrFind(
  deps: AskDeps,
  merchant: Merchant,
  checkout: Checkout,
  attempt: ShopperAttempt,
  side: Side,
): Promise<Finding> {
  const time = merchant.forGateway();
  const maySend = () => {
    const now = merchant.now();
    const isYoung = !isOver(attempt, now) && isKeyRemembered(attempt.created_at, timestamp(now));
    return attempt.status === 'starting' && isYoung;
  };
  if (maySend()) {
    const known = await side.findEarlier(deps.gateway, time, attempt);
    if (known !== null) return known;
    const asked_at = timestamp(deps.clock.now());
    if (maySend() && (await moveAttemptAsked(deps.database.db, attempt, asked_at))) {
      const { sealed_card_token } = attempt;
      const card_token =
        sealed_card_token && deps.sealing.open(sealed_card_token, cardTokenContext(attempt));
      const return_url = `${deps.baseUrl}/pay/${paymentToken(deps.sealing, checkout)}/return`;
      const count = checkout.number_of_payments ?? 1;
      const statement = statementOf(merchant, attempt.instalments, count);
      return await side.send(deps.gateway, time, attempt, { card_token, return_url, statement });
    }
  }
  const { asked_at } = attempt;
  if (asked_at === null) return { outcome: 'voided', payment_ref: null };
  const found = await side.find(deps.gateway, time, attempt);
  if (found !== null) return found;
  if (mayBeInFlight(asked_at, deps.clock.now())) {
    throw new OutcomeUnknown('an attempt that was not found may be in flight');
  }
  return { outcome: 'voided', payment_ref: null };
}

/** How the gateway is asked about one purpose. */
type Side = {
  /**
   * Finds what the gateway did for these payments, or under the id of this attempt, before a
   * database was lost and restored. A payment that the shopper could still approve is voided.
   */
  findEarlier(gateway: Gateway, time: MerchantTime, one: ShopperAttempt): Promise<Finding | null>;
  send(
    gateway: Gateway,
    time: MerchantTime,
    one: ShopperAttempt,
    given: { card_token: string | null; return_url: string; statement: Statement },
  ): Promise<Finding>;
  lookUp(gateway: Gateway, time: MerchantTime, one: ShopperAttempt, ref: string): Promise<Finding>;
  find(gateway: Gateway, time: MerchantTime, one: ShopperAttempt): Promise<Finding | null>;
  end(gateway: Gateway, time: MerchantTime, one: ShopperAttempt, ref: string): Promise<Finding>;
};

const keyOf = ({ checkout_id, number }: ShopperAttempt) => `${checkout_id}:s${number}`;
const nameOf = ({ customer_ref, id }: ShopperAttempt) => ({ customer_ref, attempt_id: id });

const payments: Side = {
  async findEarlier(gateway, time, attempt) {
    const states = await gateway.listInstalmentPayments(time, attempt);
    const captured = states.filter((state) => state.outcome === 'captured');
    const [first] = captured;
    if (captured.length > 1) throw new RequestRefused('the payments were paid before, in parts');
    if (first !== undefined) return paid(attempt, first);
    const others = states.filter(({ attempt_id }) => attempt_id !== attempt.id);
    if (others.some(({ outcome }) => outcome === 'processing')) {
      throw new OutcomeUnknown('another payment of the same instalments is processing');
    }
    await voidChallenges(gateway, time, others);
    const own = await gateway.findPayment(time, nameOf(attempt));
    if (own === null) return null;
    if (own.outcome === 'declined' || own.outcome === 'voided') return own;
    // The answer to our own request was lost: it is sent again under its key.
    if (attempt.asked_at !== null) return null;
    // A restored database has lost the attempt, and gives its number and id again.
    if (own.outcome === 'captured') {
      throw new RequestRefused('the attempt paid other payments before the database was restored');
    }
    return await payments.end(gateway, time, attempt, own.payment_ref);
  },
  async send(gateway, time, attempt, { card_token, return_url, statement }) {
    const { checkout_id, instalments, amount, currency, card_ref, keeps_card } = attempt;
    const card = card_token === null ? storedCard(card_ref) : { card_token, store: keeps_card };
    const names = { ...nameOf(attempt), key: keyOf(attempt), merchant: time, checkout_id };
    const payment = { ...names, instalments, amount, currency, card, return_url, statement };
    return paid(attempt, await gateway.pay(payment));
  },
  async lookUp(gateway, time, attempt, ref) {
    return paid(attempt, await gateway.payment(time, ref));
  },
  async find(gateway, time, attempt) {
    const state = await gateway.findPayment(time, nameOf(attempt));
    return state && paid(attempt, state);
  },
  async end(gateway, time, attempt, ref) {
    const key = `${keyOf(attempt)}:void`;
    const { outcome } = await gateway.void({ key, merchant: time, payment_ref: ref });
    if (outcome === 'voided') return { outcome, payment_ref: ref };
    return paid(attempt, await gateway.payment(time, ref));
  },
};

function storedCard(card_ref: string | null): { card_ref: string } {
  if (card_ref === null) throw new RequestRefused('the attempt has no card');
  return { card_ref };
}

function paid(attempt: ShopperAttempt, state: PaymentState): Finding {
  switch (state.outcome) {
    case 'captured':
      if (state.amount !== attempt.amount) {
        throw new RequestRefused(
          `the gateway took ${state.amount} cents for a payment of ${attempt.amount} cents`,
        );
      }
      return { ...state, outcome: 'done' };
    case 'authorised':
      throw new OutcomeUnknown('a payment that is captured at once is held');
    default:
      return state;
  }
}

const verifications: Side = {
  // A card that was verified twice is charged once.
  findEarlier: async () => null,
  async send(gateway, time, attempt, { card_token, return_url }) {
    if (card_token === null) throw new RequestRefused('the attempt has no card');
    const { checkout_id } = attempt;
    const names = { ...nameOf(attempt), key: keyOf(attempt), merchant: time, checkout_id };
    return verified(await gateway.verifyCard({ ...names, card_token, return_url }));
  },
  async lookUp(gateway, time, _attempt, ref) {
    return verified(await gateway.cardVerification(time, ref));
  },
  async find(gateway, time, attempt) {
    const state = await gateway.findCardVerification(time, nameOf(attempt));
    return state && verified(state);
  },
  async end(gateway, time, attempt, ref) {
    const key = `${keyOf(attempt)}:void`;
    return verified(await gateway.voidVerification({ key, merchant: time, verification_ref: ref }));
  },
};

function verified({ verification_ref: payment_ref, ...state }: CardVerification): Finding {
  return (
    state.outcome === 'verified'
      ? { ...state, payment_ref, outcome: 'done' }
      : { ...state, payment_ref }
  ) as Finding;
}
