import Type from 'typebox';
import { checkoutStatuses } from '#purchases/checkouts/checkout.ts';
import { messageStatuses } from '#purchases/messages/message.ts';
import { linkMembers } from '#purchases/payment-links/payment-link.schema.ts';
import { expiryDaysMax, paymentLinkStatuses } from '#purchases/payment-links/payment-link.ts';
import { Action } from './audit.schema.ts';
import { Cents, Id, nullable, oneOf, owner, paging, Time } from './list.schema.ts';

/** GET /api/payment-links, the newest first. */
export const PaymentLinksQuery = Type.Object(paging);

const { merchant_id, merchant_name, time_zone, locale, clock_ahead_ms } = owner;

export const PaymentLinkRow = Type.Object({
  id: Id,
  ...{ merchant_id, merchant_name, time_zone, locale, clock_ahead_ms },
  client_reference_id: Type.String(),
  status: oneOf(paymentLinkStatuses),
  /** Null if each shopper types the amount. */
  amount: nullable(Cents),
  currency: Type.String(),
  reusable: Type.Boolean(),
  created_at: Time,
  expires_at: nullable(Time),
  cancelled_at: nullable(Time),
  /** How many checkouts it has made. */
  checkouts: Type.Integer(),
});
export type PaymentLinkRow = Type.Static<typeof PaymentLinkRow>;

/** GET /api/payment-links/:id, and the answer to every action on a link. */
export const PaymentLinkDetails = Type.Object({
  ...PaymentLinkRow.properties,
  url: Type.String(),
  qr_svg_url: Type.String(),
  qr_png_url: Type.String(),
  print_url: Type.String(),
  /** The QR code as an SVG path, in a square of `size` units. */
  qr: Type.Object({ size: Type.Integer(), path: Type.String() }),
  /** Null if its checkouts make no callbacks. */
  notify_url: nullable(Type.String()),
  /** The shopper's e-mail address. Null if the shopper types it. */
  email: nullable(Type.String()),
  /** The mails with the link to the shopper, the newest first. */
  mails: Type.Array(
    Type.Object({
      id: Id,
      status: oneOf(messageStatuses),
      created_at: Time,
      settled_at: nullable(Time),
    }),
  ),
  /** Its newest checkouts. Those that were paid come before the others. */
  orders: Type.Array(
    Type.Object({
      id: Id,
      client_reference_id: Type.String(),
      status: oneOf(checkoutStatuses),
      amount: Cents,
      email: Type.String(),
      created_at: Time,
      completed_at: nullable(Time),
    }),
  ),
  /** Whether it has more checkouts than these. */
  is_cut: Type.Boolean(),
  audit: Type.Array(Action),
});
export type PaymentLinkDetails = Type.Static<typeof PaymentLinkDetails>;

/** POST /api/payment-links */
export const OfferPaymentLink = Type.Object({
  /** The browser chooses it, so that a repeated request makes only one link. */
  request_id: Id,
  merchant_id: Id,
  client_reference_id: linkMembers.client_reference_id,
  amount: linkMembers.amount,
  email: Type.Optional(Type.String({ format: 'email', maxLength: 254 })),
  expires_at: Type.Optional(Type.String({ maxLength: 40 })),
  /** After how many days it expires, on the merchant's clock, instead of a time. */
  days: Type.Optional(Type.Integer({ minimum: 1, maximum: expiryDaysMax })),
  reusable: linkMembers.reusable,
  /** Whether the link is mailed to the shopper. */
  mail: Type.Optional(Type.Boolean()),
  /**
   * If absent, callbacks go to the same URL as those of the newest order, if there is an order.
   * `none` makes no callbacks. Only the command line may give a URL.
   */
  notify_url: Type.Optional(
    Type.Union([Type.String({ format: 'uri', maxLength: 2048 }), Type.Literal('none')]),
  ),
});
