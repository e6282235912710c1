import type { Timestamp } from '#platform/shared/clock.ts';
import type { Capabilities } from './capabilities.ts';
import type { Evidence, EvidenceFileKind } from './evidence.ts';

/**
 * The card gateway as the slices see it. A decline is a result. An exception means that the outcome
 * is unknown (`OutcomeUnknown`) or that the gateway refused the request (`RequestRefused`).
 */
export type Gateway = {
  /** The settings of the card form on the payment page, which keeps card numbers away from us. */
  cardEntry: CardEntry;

  capabilities: Capabilities;

  /** Whether its last requests were answered. Absent if they are not counted. */
  isAnswering?(): boolean;

  /** Creates the gateway's record of a shopper. A repeated call returns the same record. */
  createCustomer(customer: {
    key: string;
    merchant: MerchantTime;
    checkout_id: string;
    shopper: Shopper;
  }): Promise<{ customer_ref: string }>;

  /**
   * Begins a payment with the shopper present. The amount, the term and the consent are committed
   * before the call. A gateway that takes a card's token confirms the payment at once and answers
   * with its outcome. Any other gateway answers `begun`: the card form confirms the payment in the
   * browser, and `payment` gives the outcome. An attempt begins only once: a repeated call returns
   * the state of the first. The shopper's bank is asked to authenticate (3-D Secure).
   */
  begin(payment: {
    key: string;
    merchant: MerchantTime;
    checkout_id: string;
    instalments: number[];
    attempt_id: string;
    customer_ref: string;
    amount: number;
    currency: string;
    /** `later` means that the amount is held, and captured or voided afterwards. */
    capture: 'later' | 'now';
    card: GivenCard;
    /** True if later payments are charged without the shopper. */
    store_card: boolean;
    /** The text of the shopper's card statement. */
    statement: Statement;
    return_url: string;
  }): Promise<PaymentState | RefusedData>;

  /** Looks up a payment. Only this answer counts after a challenge, a timeout or a restart. */
  payment(merchant: MerchantTime, payment_ref: string): Promise<PaymentState>;

  /** Finds an attempt's payment if its reference never reached us. Null if there is none. */
  findPayment(
    merchant: MerchantTime,
    attempt: { customer_ref: string; attempt_id: string },
  ): Promise<PaymentState | null>;

  /** All payments that the gateway has for any of the instalments, whichever attempt made them. */
  listInstalmentPayments(
    merchant: MerchantTime,
    wanted: { customer_ref: string; checkout_id: string; instalments: number[] },
  ): Promise<(PaymentState & { attempt_id: string | null })[]>;

  /** Captures a held amount, or less of it. The rest of the hold is voided. */
  capture(payment: {
    key: string;
    merchant: MerchantTime;
    payment_ref: string;
    amount: number;
  }): Promise<{ outcome: 'captured' } | { outcome: 'lapsed' }>;

  /**
   * Voids a payment that holds money, or that waits for a card or for the bank's challenge. After
   * that it cannot be confirmed. The outcome `challenge` means that it was not voided, because the
   * bank may still approve the challenge. `captured`: the money was taken before. `decline`: there
   * was nothing to void, because the card had been declined. Voiding twice is not an error.
   */
  void(payment: {
    key: string;
    merchant: MerchantTime;
    payment_ref: string;
  }): Promise<{ outcome: 'voided'; decline?: Decline } | { outcome: 'captured' | 'challenge' }>;

  /** Charges a stored card without the shopper. */
  charge(payment: {
    key: string;
    merchant: MerchantTime;
    checkout_id: string;
    instalment: number;
    attempt_id: string;
    customer_ref: string;
    card_ref: string;
    amount: number;
    currency: string;
    statement: Statement;
  }): Promise<Charge>;

  /**
   * The card that the shopper entered, by the token of the card form. It is neither charged nor
   * stored. The members of the result are null if the gateway gives no tokens or lacks this one.
   */
  enteredCard(merchant: MerchantTime, card_token: string): Promise<Omit<HeldCard, 'card_ref'>>;

  /**
   * Begins to verify a card and to store it for later charges, with the shopper present. Charges
   * nothing. Otherwise it works like `begin`.
   */
  beginVerification(card: {
    key: string;
    merchant: MerchantTime;
    checkout_id: string;
    attempt_id: string;
    customer_ref: string;
    currency: string;
    /** Null if the card form confirms the verification in the browser. */
    card_token: string | null;
    return_url: string;
  }): Promise<CardVerification>;

  cardVerification(merchant: MerchantTime, verification_ref: string): Promise<CardVerification>;

  /** Finds a verification whose reference never reached us; null if it does not exist. */
  findCardVerification(
    merchant: MerchantTime,
    attempt: { customer_ref: string; attempt_id: string },
  ): Promise<CardVerification | null>;

  /** Ends a verification that is not complete. A complete one stays `verified`. */
  voidVerification(verification: {
    key: string;
    merchant: MerchantTime;
    verification_ref: string;
  }): Promise<CardVerification>;

  /**
   * Removes a stored card, so that it cannot be charged any more. Removing a card twice is not an
   * error.
   */
  detachCard(card: { key: string; merchant: MerchantTime; card_ref: string }): Promise<void>;

  /**
   * Deletes the gateway's record of a shopper and all its cards. Deleting a record twice is not an
   * error. Payments and refunds stay.
   */
  deleteCustomer(customer: { merchant: MerchantTime; customer_ref: string }): Promise<void>;

  /**
   * The gateway's records of a checkout's shopper that are not deleted, even if we never learnt of
   * them. A record may be missing in the first hour after it was created.
   */
  findCustomers(merchant: MerchantTime, checkout_id: string): Promise<string[]>;

  /** Refunds captured money. If the gateway refuses, the refund has failed without a reference. */
  refund(refund: {
    key: string;
    merchant: MerchantTime;
    payment_ref: string;
    amount: number;
    refund_id: string;
    /** The request that this refund is a part of, to record the refund again after a restore. */
    request?: RefundOrigin;
  }): Promise<RefundState | { refund_ref: null; status: 'failed' }>;

  /** Finds a refund whose reference never reached us, or null. */
  findRefund(
    merchant: MerchantTime,
    refund: { payment_ref: string; amount: number; refund_id: string },
  ): Promise<RefundState | null>;

  refundStatus(merchant: MerchantTime, refund_ref: string): Promise<RefundState>;

  /** One page of the gateway's own records, newest first. `after` is the previous page's `next`. */
  listRecords(
    kind: RecordKind,
    page: { after: string | null; from: Timestamp | null; to: Timestamp | null },
  ): Promise<{ records: GatewayRecord[]; next: string | null }>;

  /** The heartbeats that databases left at the gateway (decision 0097). */
  listHeartbeats(): Promise<Heartbeat[]>;

  /** Writes a database's heartbeat into its slot. `heartbeat_ref` is null for the first. */
  writeHeartbeat(
    heartbeat: Omit<Heartbeat, 'heartbeat_ref'> & { heartbeat_ref: string | null },
  ): Promise<void>;

  /**
   * Returns the event's id and the dispute that it announces. Null if the event cannot be read or
   * its signature is not the gateway's, or if the settings have no webhook secret.
   */
  readEvent(
    raw: Buffer,
    /** A header of the request; empty if it is missing. */
    header: (name: string) => string,
  ): Promise<{ event_id: string | null; dispute_ref: string | null } | null>;

  /** One page of the account's disputes, newest first. `after` is the previous page's `next`. */
  listDisputes(after: string | null): Promise<{ disputes: DisputeState[]; next: string | null }>;

  dispute(merchant: MerchantTime, dispute_ref: string): Promise<DisputeState>;

  /** Uploads a file to the gateway. Evidence can then refer to it. */
  uploadEvidence(file: EvidenceFile): Promise<{ file_ref: string }>;

  /** Stores evidence with a dispute without sending it to the bank. Needs `stagesEvidence`. */
  stageEvidence(answer: AnswerWithEvidence): Promise<DisputeState>;

  /** Sends evidence to the bank. The gateway accepts it only once. */
  submitEvidence(answer: AnswerWithEvidence): Promise<DisputeState>;

  /** Concedes a dispute: it is lost. */
  acceptDispute(answer: DisputeAnswer): Promise<DisputeState>;
};

/** The merchant's time (decision 0017): holds and refunds at a test gateway age with it. */
export type MerchantTime = { id: string; now: Timestamp };

export type Shopper = { email: string; name?: string; phone_number?: string };

/** Which payments of a plan a request is about. */
export type PlanPlace = { instalments: number[]; number_of_payments: number };

/** The merchant's name as shoppers know it, and which payments of the plan the request is about. */
export type Statement = PlanPlace & { merchant_name: string };

/** The settings of the gateway's card form on the page. The adapter supplies all of them. */
export type CardEntry = {
  /** The adapter whose card form the page shows (`web/card-forms/`). */
  form: 'stripe' | 'hyperswitch';
  /**
   * When the shopper enters the card. `before`: before the payment begins, and the form turns the
   * card into a token. `after`: in the session of a payment that has begun.
   */
  entersCard: 'before' | 'after';
  scriptUrl: string;
  publicKey: string;
  /** Where the form calls the gateway's API; absent if its script knows the address. */
  apiUrl?: string;
  /** Origins that the page's content security policy must allow besides our own. */
  scriptOrigins: string[];
  frameOrigins: string[];
  connectOrigins: string[];
};

/**
 * The card of a payment with the shopper present: the stored card, or the token of a card that they
 * entered. Null if the card form confirms the payment in the browser.
 */
export type GivenCard = { card_ref: string } | { card_token: string } | null;

export type DeclineReason =
  | 'generic'
  | 'insufficient_funds'
  | 'lost_card'
  | 'stolen_card'
  | 'velocity_exceeded'
  | 'expired_card'
  | 'incorrect_cvc'
  | 'incorrect_number'
  | 'processing_error'
  | 'authentication_failed'
  | 'authentication_required';

export type Decline = {
  reason: DeclineReason;
  /** False if a retry with this card is pointless or forbidden. */
  may_retry: boolean;
  /** The gateway's code (or that of `amountRefused`) and the card network's; null if none. */
  code?: string | null;
  network_code?: string | null;
  /** The declined card (`cardKeyOf`); absent if unknown, null if only its reference is gone. */
  card_key?: string | null;
  /** How many hours the card network asks to wait before a retry; absent if it does not ask. */
  wait_hours?: number;
};

/** How the shopper's bank authenticated a payment (3-D Secure), in the gateway's words. */
export type Authentication = {
  /** `frictionless` or `challenge`; null if nothing was authenticated. */
  flow: string | null;
  /** `authenticated`, `attempt_acknowledged`, `not_supported`, `failed`, … */
  result: string | null;
  /** The card network's Electronic Commerce Indicator. */
  eci: string | null;
  version: string | null;
  /** The id of the authentication at the card network's directory server. */
  transaction_id: string | null;
};

/** The card network's own ids for a payment, as the gateway passes them on. */
export type SchemeData = {
  network_transaction_id: string | null;
  /** Mastercard's id that links all payments under one agreement. */
  transaction_link_id: string | null;
};

export type HeldCard = {
  /** For charges without the shopper; null if the card was not stored. */
  card_ref: string | null;
  brand: string | null;
  last4: string | null;
  /** The last month in which it works, `2027-03`. */
  expires: string | null;
  /** Identifies a card number that is entered again. Absent if the gateway reports none. */
  fingerprint?: string | null;
};

/** Recognises a card that is entered again. Null if the gateway describes no card. */
export const cardKeyOf = ({ fingerprint, brand, last4, expires }: Omit<HeldCard, 'card_ref'>) =>
  fingerprint ?? (last4 === null ? null : `${brand} ${last4} ${expires}`);

/** A card as it is stored: with its key, without the fingerprint. */
export function cardToStore<Card extends HeldCard>(held: Card) {
  const { fingerprint: _, ...card } = held;
  return { ...card, card_key: cardKeyOf(held) };
}

/** The gateway refuses the checkout's data, so the checkout can never be paid (decision 0011). */
export type RefusedData = { outcome: 'refused'; detail: string };

/** The secret with which the page's card form confirms a payment that has begun. */
export type CardSession = { client_secret: string };
/** The gateway's name for a state that we do not know, and whether the form awaits the shopper. */
export type Undecided = { unknown_status?: string; asks_shopper?: true };

export type PaymentState =
  /** The shopper has not entered a card in the session yet. Nothing is held. */
  | { outcome: 'begun'; payment_ref: string; session: CardSession }
  | {
      outcome: 'authorised';
      payment_ref: string;
      card: HeldCard;
      /** When the hold lapses by itself. */
      capture_before: Timestamp;
      /** Null if the bank was not asked to authenticate. */
      authentication: Authentication | null;
      /** Null if the card network or the gateway gave none. */
      scheme: SchemeData | null;
    }
  | { outcome: 'challenge'; payment_ref: string; url: string }
  | { outcome: 'declined'; payment_ref: string | null; decline: Decline }
  | ({ outcome: 'processing'; payment_ref: string } & Undecided)
  | {
      outcome: 'captured';
      payment_ref: string;
      amount: number;
      card: HeldCard;
      /** Null if the bank was not asked to authenticate. */
      authentication: Authentication | null;
      /** Null if the card network or the gateway gave none. */
      scheme: SchemeData | null;
    }
  | { outcome: 'voided'; payment_ref: string };

export type CardVerification =
  /** The shopper has not entered a card in the session yet. */
  | { outcome: 'begun'; verification_ref: string; session: CardSession }
  | {
      outcome: 'verified';
      verification_ref: string;
      card: HeldCard & { card_ref: string };
      /** Null if the bank was not asked to authenticate. */
      authentication: Authentication | null;
      /** Null if the card network or the gateway gave none. */
      scheme: SchemeData | null;
    }
  | { outcome: 'challenge'; verification_ref: string; url: string }
  | { outcome: 'declined'; verification_ref: string | null; decline: Decline }
  | ({ outcome: 'processing'; verification_ref: string } & Undecided)
  | { outcome: 'voided'; verification_ref: string };

export type Charge =
  | { outcome: 'charged'; payment_ref: string; scheme: SchemeData | null }
  | { outcome: 'declined'; payment_ref: string | null; decline: Decline };

type DisputeAnswer = { key: string; merchant: MerchantTime; dispute_ref: string };

type EvidenceFile = {
  key: string;
  merchant: MerchantTime;
  name: string;
  media_type: string;
  content: Buffer;
};

/** All of the evidence. The gateway removes fields and files that are not in it. */
type AnswerWithEvidence = DisputeAnswer & {
  evidence: Evidence;
  /** References to the files that the gateway has, by kind. */
  files: Partial<Record<EvidenceFileKind, string>>;
};

/**
 * The kinds of records that a reconciliation reads. `transactions` are the movements of the
 * account's balance.
 */
export const recordKinds = ['payments', 'charges', 'refunds', 'disputes', 'transactions'] as const;
export type RecordKind = (typeof recordKinds)[number];

/**
 * The heartbeat that a database last wrote to the gateway (decision 0097). `count` is how many
 * times the database had raised its heartbeat by then.
 */
export type Heartbeat = {
  heartbeat_ref: string;
  database: string;
  /** The name of the gateway in the settings of that database; absent if none was written. */
  gateway?: string;
  count: number;
};

/** The refund request that a refund at the gateway is a part of. */
export type RefundOrigin = { id: string; amount: number; created_at: Timestamp };

/** The gateway's record of a payment, a refund, a dispute or a movement of its balance. */
export type GatewayRecord = {
  reference: string;
  /** Our id for an attempt or a refund; for a dispute, its payment's reference. Null if unknown. */
  own_id: string | null;
  checkout_id: string | null;
  /** The amount that was taken, held, refunded or withdrawn. */
  amount: number;
  state: 'taken' | 'held' | 'nothing' | 'in_flight';
  created_at: Timestamp;
  /**
   * The payment that the record belongs to; for a payment, its own reference. Null if the gateway
   * does not say.
   */
  payment_ref: string | null;
  customer_ref: string | null;
  /** The payments of the plan that the record covers. */
  instalments: number[];
  /** The term that the shopper chose. Only first payments of a plan and charges have it. */
  number_of_payments: number | null;
  request: RefundOrigin | null;
  /**
   * The gateway's fee for a movement of its balance, with the type of the transaction; null for
   * other records. `isOfAccount`: the gateway charged the fee to the account, not to a payment.
   */
  fee: { type: string; amount: number; currency: string; isOfAccount: boolean } | null;
};

export type DisputeState = {
  dispute_ref: string;
  /** The payment that the cardholder disputes; null if the gateway does not say. */
  payment_ref: string | null;
  amount: number;
  currency: string;
  reason: string;
  network_reason_code: string | null;
  /** An `inquiry` withdraws nothing yet. `closed` means that it ended without a decision. */
  status: 'inquiry' | 'needs_response' | 'under_review' | 'won' | 'lost' | 'closed';
  /** The gateway's name for a state that the adapter does not know: it counts as open. */
  unknown_status?: string;
  opened_at: Timestamp;
  /** The time by which evidence can be submitted. */
  due_by: Timestamp | null;
  has_answer: boolean;
  /** The amount that the gateway withdrew and did not reinstate, and its charge for the dispute. */
  withdrawn: number;
  fee: number;
  /** Set if the gateway moved the money in another currency. Such fees are not in `fee`. */
  other_currency: string | null;
};

export type RefundState = {
  refund_ref: string;
  status: 'pending' | 'succeeded' | 'failed';
};

/**
 * The request may or may not have had its effect: a timeout, a closed connection, a 5xx, a key in
 * use. The caller records the request as unfinished and finds out later what happened.
 */
export class OutcomeUnknown extends Error {
  /** `no_answer`: it failed or did not answer. `too_many`: it asks for fewer requests. */
  readonly why: 'no_answer' | 'too_many' | 'undecided';
  /** How long the gateway asks us to wait; null if it does not say. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    why: OutcomeUnknown['why'] = 'undecided',
    retryAfterMs: number | null = null,
  ) {
    super(message);
    this.why = why;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The gateway refused the request and did nothing: a wrong key, a missing permission, a parameter
 * that it does not accept, an idempotency key that was used for a different request. The fault is
 * ours, and a retry will not help until it is corrected.
 */
export class RequestRefused extends Error {}
