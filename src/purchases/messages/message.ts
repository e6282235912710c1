import type { Timestamp } from '#platform/shared/clock.ts';
import type { PlanPanel } from '#purchases/shoppers/plan-attempt.ts';

/**
 * A mail to the shopper about a checkout. There are two exceptions: `evidence_asked` goes to the
 * merchant, and `payment_link` is about a payment link that has no checkout yet. The transaction
 * that causes a message writes its row, `pending` and due on the merchant's clock. The worker sends
 * the message and makes it `sent`. If a mail server refuses a message permanently, or the message
 * cannot be sent for three days, it becomes `refused`, which operators see. A message that is no
 * longer true when it falls due, such as a reminder of a payment that a refund has cancelled, is
 * `skipped`. A reminder about a paused plan stays `pending` and is postponed.
 *
 * A crash between sending and recording sends the message again under the same Message-ID.
 */
export const messageStatuses = ['pending', 'sent', 'refused', 'skipped'] as const;
export type MessageStatus = (typeof messageStatuses)[number];

export const shopperMessageKinds = [
  'receipt',
  'charge_soon',
  'charged',
  'declined',
  'card_expires',
  'card_replaced',
  'refunded',
  'plan_finished',
  'sign_in_link',
  'answer',
] as const;
export type ShopperMessageKind = (typeof shopperMessageKinds)[number];
export const messageKinds = [...shopperMessageKinds, 'evidence_asked', 'payment_link'] as const;
export type MessageKind = (typeof messageKinds)[number];

export const attemptOutcomes = ['sent', 'refused', 'failed'] as const;
export type AttemptOutcome = (typeof attemptOutcomes)[number];

/** Facts that a message states and that are not in the plan. */
export type MessageFacts = {
  /** The payment that the message is about. */
  instalment?: number;
  /** All payments that the shopper paid at once, if there are several. */
  instalments?: number[];
  amount?: number;
  /**
   * The reference of the card that was charged. The stored card may have changed by the time the
   * mail is sent.
   */
  card_ref?: string;
  /** Whether the shopper paid with a card that is not the stored one. */
  other_card?: boolean;
  /**
   * Why nothing was charged, if the bank did not decline the charge: the bank was `not_asked`, or
   * the hold had `lapsed`.
   */
  uncharged?: 'not_asked' | 'lapsed';
  /** The last month in which the card works, `2027-03`. */
  card_expires?: string;
  /** When a one-time link expires, or when the time for the merchant's answer ends. */
  expires_at?: Timestamp;
  /** The panel of the plan page that the shopper wanted when they asked for the link. */
  panel?: PlanPanel;
  /** The id of the answer to the shopper. */
  entry?: string;
  /** The dispute that the merchant is asked about, and the bank's reason for it. */
  dispute?: string;
  reason?: string;
};

export type Message = {
  merchant_id: string;
  id: string;
  /** Null for the mail of a payment link, which has `payment_link_id`. */
  checkout_id: string | null;
  kind: MessageKind;
  about: string;
  facts: MessageFacts;
  sealed_token: Buffer | null;
  status: MessageStatus;
  created_at: Timestamp;
  /** When the message first fell due. `due_at` moves with every retry. */
  planned_at: Timestamp;
  due_at: Timestamp | null;
  settled_at: Timestamp | null;
  attempts: number;
  lease: string | null;
  leased_until: Timestamp | null;
  payment_link_id: string | null;
};

/**
 * The context that a one-time link's token is sealed with, so that it opens for no other message.
 */
export const messageTokenContext = (message: { id: string }) => `messages ${message.id}`;

/** The cause of the mail about a refund. A retry that pays causes a mail of its own. */
export const aboutRefund = ({ id, round }: { id: string; round: number }) =>
  round === 1 ? `refund ${id}` : `refund ${id}, round ${round}`;

/** A shopper is told about a charge this many days before it. */
export const noticeDays = 3;

/** A message that could not be sent for this long is given up, and an operator has to act. */
const giveUpHours = 72;

/** When a message that could not be sent is retried; null if it is too late for a retry. */
export function retriesAt(
  { planned_at, attempts }: Pick<Message, 'planned_at' | 'attempts'>,
  now: Temporal.Instant,
): Temporal.Instant | null {
  if (now.since(planned_at).total('hours') >= giveUpHours) return null;
  const seconds = Math.min(60 * 2 ** Math.min(attempts, 10), 3600);
  return now.add({ seconds });
}
