import type { Timestamp } from '../shared/clock.ts';

/**
 * The card gateway as the rest of the house sees it. A decline is a result; an exception means
 * that the outcome is not known (`OutcomeUnknown`) or that the gateway cannot be used as set up.
 */
export type Gateway = {
  /** What the payment page needs to take a card without the number ever reaching us. */
  cardEntry: CardEntry;

  /** Makes the gateway's record of a shopper; the same key gives the same one. */
  createCustomer(customer: {
    key: string;
    merchant: MerchantTime;
    checkout_id: string;
    shopper: Shopper;
  }): Promise<{ customer_ref: string }>;

  /**
   * Holds an amount on a card that the shopper entered. The same key with the same input gives the
   * same outcome, also after a crash, for as long as the gateway remembers keys (a day).
   */
  authorise(payment: {
    key: string;
    merchant: MerchantTime;
    checkout_id: string;
    attempt_id: string;
    customer_ref: string;
    amount: number;
    currency: string;
    card_token: string;
    /** Whether later payments will be charged without the shopper. */
    store_card: boolean;
    return_url: string;
  }): Promise<Authorisation>;

  /** What became of a payment: the only truth after a challenge, a time-out or a restart. */
  payment(merchant: MerchantTime, payment_ref: string): Promise<PaymentState>;

  /** The payment of an attempt whose reference we never learnt, or null when there is none. */
  findPayment(
    merchant: MerchantTime,
    attempt: { customer_ref: string; attempt_id: string },
  ): Promise<PaymentState | null>;

  /** Takes a held amount, or less of it: the rest is let go. */
  capture(payment: {
    key: string;
    merchant: MerchantTime;
    payment_ref: string;
    amount: number;
  }): Promise<{ outcome: 'captured' } | { outcome: 'lapsed' }>;

  /** Lets a hold go. Also right for one that is waiting for a challenge, or is let go already. */
  void(payment: {
    key: string;
    merchant: MerchantTime;
    payment_ref: string;
  }): Promise<{ outcome: 'voided' } | { outcome: 'captured' }>;

  /** Charges a stored card without the shopper. */
  charge(payment: {
    key: string;
    merchant: MerchantTime;
    checkout_id: string;
    attempt_id: string;
    customer_ref: string;
    card_ref: string;
    amount: number;
    currency: string;
  }): Promise<Charge>;

  /** Gives captured money back. Refused for good: failed, and there is nothing to refer to. */
  refund(refund: {
    key: string;
    merchant: MerchantTime;
    payment_ref: string;
    amount: number;
    refund_id: string;
  }): Promise<RefundState | { refund_ref: null; status: 'failed' }>;

  /** The refund whose reference we never learnt, or null when there is none. */
  findRefund(
    merchant: MerchantTime,
    refund: { payment_ref: string; refund_id: string },
  ): Promise<RefundState | null>;

  refundStatus(merchant: MerchantTime, refund_ref: string): Promise<RefundState>;
};

/** The merchant's time (D35, D36): a test gateway lets holds and refunds age with it. */
export type MerchantTime = { id: string; now: Timestamp };

export type Shopper = { email: string; name?: string; phone_number?: string };

export type CardEntry = {
  scriptUrl: string;
  publicKey: string;
  /** What the page's content security policy must allow, besides ourselves. */
  scriptOrigins: string[];
  frameOrigins: string[];
  connectOrigins: string[];
};

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
  /** False when trying this card again is pointless or forbidden. */
  may_retry: boolean;
};

export type HeldCard = {
  /** For charges without the shopper; null when it was not stored. */
  card_ref: string | null;
  brand: string | null;
  last4: string | null;
};

export type Authorisation =
  | {
      outcome: 'authorised';
      payment_ref: string;
      card: HeldCard;
      /** When the hold lapses by itself. */
      capture_before: Timestamp;
    }
  | { outcome: 'challenge'; payment_ref: string; url: string }
  | { outcome: 'declined'; payment_ref: string | null; decline: Decline }
  /** The gateway refuses what the checkout says (not the card): it can never be paid (D20). */
  | { outcome: 'refused'; detail: string };

export type PaymentState =
  | Exclude<Authorisation, { outcome: 'refused' }>
  | { outcome: 'processing'; payment_ref: string }
  | { outcome: 'captured'; payment_ref: string; amount: number }
  | { outcome: 'voided'; payment_ref: string };

export type Charge =
  | { outcome: 'charged'; payment_ref: string }
  | { outcome: 'declined'; payment_ref: string | null; decline: Decline };

export type RefundState = {
  refund_ref: string;
  status: 'pending' | 'succeeded' | 'failed';
};

/**
 * The request may or may not have had its effect: a time-out, a closed connection, a 5xx, a key
 * in use. Whoever asked keeps its row open and finds out later.
 */
export class OutcomeUnknown extends Error {}
