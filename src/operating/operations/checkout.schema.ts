import Type from 'typebox';
import { languages } from '#platform/shared/language.ts';
import {
  attemptOutcomes,
  callbackStatuses,
  callbackTriggers,
} from '#purchases/callbacks/callback.ts';
import { checkoutStatuses } from '#purchases/checkouts/checkout.ts';
import { disputeStatuses } from '#purchases/disputes/dispute.ts';
import {
  collectionKinds,
  collectionStatuses,
  instalmentStatuses,
} from '#purchases/instalments/instalment.ts';
import { messageStatuses } from '#purchases/messages/message.ts';
import { Action, ActorSummary } from './audit.schema.ts';
import { EventName } from './callback.schema.ts';
import {
  Cents,
  Day,
  FilterDay,
  GatewayName,
  Id,
  nullable,
  oneOf,
  owner,
  paging,
  Time,
} from './list.schema.ts';
import { PlannedPart, RefundPart, RefundRow } from './refund.schema.ts';

/** GET /api/checkouts, the newest first. `from` and `to` are days; both are included. */
export const CheckoutsQuery = Type.Object({
  ...paging,
  status: Type.Optional(oneOf(checkoutStatuses)),
  /**
   * Days in the merchant's zone, or in the service's home zone if the list covers several
   * merchants.
   */
  from: Type.Optional(FilterDay),
  to: Type.Optional(FilterDay),
  /** The amount in cents. Checkouts that have not ended are left out. */
  amount: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000_000 })),
  /** The name of a gateway. Checkouts that have not ended are left out. */
  gateway: Type.Optional(GatewayName),
  /** An e-mail address or a name, as in the search. */
  shopper: Type.Optional(Type.String({ minLength: 1, maxLength: 254 })),
});

export type CheckoutsQuery = Type.Static<typeof CheckoutsQuery>;

export const CheckoutRow = Type.Object({
  id: Id,
  ...owner,
  status: oneOf(checkoutStatuses),
  amount: Cents,
  currency: Type.String(),
  number_of_payments: nullable(Type.Integer()),
  created_at: Time,
  collected: Cents,
  outstanding: Cents,
});
export type CheckoutRow = Type.Static<typeof CheckoutRow>;

/** One payment of the plan. */
export const PlanPayment = Type.Object({
  number: Type.Integer(),
  amount: Cents,
  /** The amount that refunds cancelled before the payment was collected. */
  reduced: Cents,
  status: oneOf(instalmentStatuses),
  due_on: Day,
  /** When the payment is attempted next, on the merchant's clock. */
  due_at: nullable(Time),
  collected_at: nullable(Time),
  declines: Type.Integer(),
  /** Why the last attempt was declined. */
  reason: nullable(Type.String()),
  /** Whether a retry could succeed. Null if the payment was never declined. */
  may_retry: nullable(Type.Boolean()),
  payment_ref: nullable(Type.String()),
  /**
   * Whether collecting is paused: by a refund, by a dispute, by a difference from the gateway's
   * records, or because the shopper is paying.
   */
  paused: Type.Boolean(),
});
export type PlanPayment = Type.Static<typeof PlanPayment>;

export const timelineKinds = [
  'checkout',
  'attempt',
  'callback',
  'collection',
  'refund',
  'dispute',
  'message',
  'note',
  'conversation',
] as const;

/** One event. `by` names the person who acted, if a person did. */
export const TimelineEntry = Type.Object({
  at: Time,
  kind: oneOf(timelineKinds),
  description: Type.String(),
  by: nullable(Type.String()),
  tone: oneOf(['neutral', 'good', 'bad', 'waiting'] as const),
  /** The message to the shopper that the entry is about. */
  message_id: Type.Optional(Id),
});
export type TimelineEntry = Type.Static<typeof TimelineEntry>;

/** GET /api/checkouts/:id/messages/:message, and POST …/send-again */
export const MessageParams = Type.Object({ id: Id, message: Id });
export const MessageDetails = Type.Object({
  id: Id,
  kind: Type.String(),
  status: oneOf(messageStatuses),
  settled_at: nullable(Time),
  to: Type.String(),
  subject: Type.String(),
  /** The mail as it would be written today, without the shopper's own link. */
  text: Type.String(),
  /** Why it cannot be sent again; null if it can. */
  refusal: nullable(Type.String()),
});
export type MessageDetails = Type.Static<typeof MessageDetails>;

export const PaymentAttempt = Type.Object({
  id: Id,
  number: Type.Integer(),
  status: Type.String(),
  amount: Cents,
  number_of_payments: Type.Integer(),
  card_brand: nullable(Type.String()),
  card_last4: nullable(Type.String()),
  decline_reason: nullable(Type.String()),
  may_retry: nullable(Type.Boolean()),
  payment_ref: nullable(Type.String()),
  created_at: Time,
  settled_at: nullable(Time),
});

export const Collection = Type.Object({
  id: Id,
  instalment: Type.Integer(),
  number: Type.Integer(),
  kind: oneOf(collectionKinds),
  status: oneOf(collectionStatuses),
  amount: Cents,
  payment_ref: nullable(Type.String()),
  decline_reason: nullable(Type.String()),
  may_retry: nullable(Type.Boolean()),
  created_at: Time,
  settled_at: nullable(Time),
});

/**
 * One attempt to deliver a callback, with what was sent and answered. The texts come from others,
 * so escape them.
 */
export const CallbackAttempt = Type.Object({
  number: Type.Integer(),
  run: Type.Integer(),
  trigger: oneOf(callbackTriggers),
  operator: nullable(Type.String()),
  started_at: Time,
  finished_at: nullable(Time),
  outcome: oneOf(attemptOutcomes),
  reason: nullable(Type.String()),
  address: nullable(Type.String()),
  tls_version: nullable(Type.String()),
  request_headers: Type.Record(Type.String(), Type.String()),
  response_status: nullable(Type.Integer()),
  response_headers: nullable(
    Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())])),
  ),
  /** The beginning of the body; `response_body_bytes` is the length of all of it. */
  response_body: nullable(Type.String()),
  response_body_bytes: nullable(Type.Integer()),
  milliseconds: nullable(Type.Number()),
});
export type CallbackAttempt = Type.Static<typeof CallbackAttempt>;

export const CallbackDetails = Type.Object({
  id: Id,
  merchant_id: Id,
  checkout_id: nullable(Id),
  /**
   * The event, and the refund, dispute or payout that changed. Null for the callback that reports
   * how a checkout ended.
   */
  event: nullable(EventName),
  subject_id: nullable(Id),
  status: oneOf(callbackStatuses),
  notify_url: Type.String(),
  host: Type.String(),
  payload: Type.String(),
  attempts: Type.Integer(),
  attempts_expired: Type.Integer(),
  created_at: Time,
  due_at: nullable(Time),
  delivered_at: nullable(Time),
  redirect_url: nullable(Type.String()),
  history: Type.Array(CallbackAttempt),
});
export type CallbackDetails = Type.Static<typeof CallbackDetails>;

/** GET /api/callbacks/:id */
export const OwnedCallback = Type.Object({
  ...CallbackDetails.properties,
  time_zone: owner.time_zone,
  clock_ahead_ms: owner.clock_ahead_ms,
});
export type OwnedCallback = Type.Static<typeof OwnedCallback>;

export const Posting = Type.Object({
  id: Id,
  at: Time,
  kind: Type.String(),
  debit: Type.String(),
  credit: Type.String(),
  amount: Cents,
  instalment: nullable(Type.Integer()),
  refund_id: nullable(Id),
});

export const Note = Type.Object({ id: Id, at: Time, by: ActorSummary, text: Type.String() });
export type Note = Type.Static<typeof Note>;

/** GET /api/checkouts/:id */
export const CheckoutDetails = Type.Object({
  ...CheckoutRow.properties,
  number: Type.Integer(),
  integration_id: Id,
  /** The checkout's id in the trace collector. Null if there is no collector. */
  trace_id: nullable(Type.String()),
  phone_number: nullable(Type.String()),
  billing_address: nullable(Type.String()),
  line_items: Type.Array(
    Type.Object({ name: Type.String(), amount: Cents, quantity: Type.Integer() }),
  ),
  terms: Type.Array(Type.Integer()),
  language: nullable(oneOf(languages)),
  /** Null if the payment link that made the checkout makes no callbacks. */
  notify_url: nullable(Type.String()),
  success_url: nullable(Type.String()),
  cancel_url: Type.String(),
  signed: Type.Boolean(),
  is_v1: Type.Boolean(),
  /** The payment link that made the checkout; null if the merchant created it. */
  payment_link_id: nullable(Id),
  /** The gateway that its payments go through. */
  gateway: Type.String(),
  expires_at: Time,
  completed_at: nullable(Time),
  erased_at: nullable(Time),
  card: nullable(Type.Object({ brand: nullable(Type.String()), last4: nullable(Type.String()) })),
  refunded: Cents,
  cancelled: Cents,
  refundable: Cents,
  plan: Type.Array(PlanPayment),
  /** One sentence about a request that the gateway has not answered yet. */
  waiting: nullable(Type.String()),
  timeline: Type.Array(TimelineEntry),
  attempts: Type.Array(PaymentAttempt),
  collections: Type.Array(Collection),
  callback: nullable(CallbackDetails),
  refunds: Type.Array(Type.Object({ ...RefundRow.properties, parts: Type.Array(RefundPart) })),
  postings: Type.Array(Posting),
  balances: Type.Record(Type.String(), Cents),
  audit: Type.Array(Action),
  notes: Type.Array(Note),
  /** The tables with more rows than are shown: only the newest are included. */
  cut: Type.Array(Type.String()),
  disputes: Type.Array(
    Type.Object({
      id: Id,
      instalment: Type.Integer(),
      amount: Cents,
      status: oneOf(disputeStatuses),
      reason: Type.String(),
      created_at: Time,
      due_by: nullable(Time),
    }),
  ),
});
export type CheckoutDetails = Type.Static<typeof CheckoutDetails>;

/** POST /api/checkouts/:id/refund-preview and POST /api/checkouts/:id/refunds */
export const RefundAmount = Type.Object({ amount: Type.Integer({ minimum: 1 }) });
export const CreateRefund = Type.Object({
  amount: Type.Integer({ minimum: 1 }),
  /** The browser chooses it, so that a repeated request makes only one refund. */
  request_id: Id,
  reason: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
});

export const RefundPreview = Type.Object({
  amount: Cents,
  currency: Type.String(),
  remainder: Cents,
  /** The payments that the refund would be taken from. */
  parts: Type.Array(PlannedPart),
  after: Type.Array(
    Type.Object({
      number: Type.Integer(),
      /** The amount of this payment that was or will be collected. */
      amount: Cents,
      status: oneOf(instalmentStatuses),
      returned: Cents,
    }),
  ),
  /** Why the amount cannot be refunded, or null. */
  refusal: nullable(Type.String()),
  warnings: Type.Array(Type.String()),
  /**
   * Whether another person has to approve the refund: its amount, together with the checkout's
   * refunds to which fewer than two people agreed, is above the merchant's threshold.
   */
  needs_second_person: Type.Boolean(),
});
export type RefundPreview = Type.Static<typeof RefundPreview>;

/** GET /api/checkouts/:id/notes and GET /api/checkouts/:id/messages, the newest first. */
export const PageQuery = Type.Object({ after: paging.after, limit: paging.limit });

/** POST /api/checkouts/:id/notes */
export const CreateNote = Type.Object({ text: Type.String({ minLength: 1, maxLength: 2_000 }) });
