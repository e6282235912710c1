import { sql } from 'kysely';
import type { Authentication, SchemeData } from '#gateway/gateway.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { messagesOf } from '#purchases/messages/archive.sql.ts';

export type FactCard = { brand: string | null; last4: string | null };

export type AgreedConsent = {
  version: string;
  payments: { number: number; amount: number; due_on: string }[];
};

/** The facts about a disputed order that serve as evidence. */
export type Facts = {
  client_reference_id: string;
  ordered_at: Timestamp;
  completed_at: Timestamp;
  amount: number;
  customer: {
    email: string;
    first_name?: string;
    last_name?: string;
    phone_number?: string;
    billing_address?: string;
  };
  line_items: { name: string; amount: number; quantity: number }[] | null;
  number_of_payments: number;
  card: FactCard | null;
  consent: AgreedConsent | null;
  /** How the bank authenticated the first payment (3-D Secure). */
  authentication: Authentication | null;
  disputed: {
    /**
     * `capture` is the first payment, made with the order; `charge` is a payment without the
     * cardholder; `shopper` is one that the cardholder made themselves, on the plan page.
     */
    kind: 'capture' | 'charge' | 'shopper';
    at: Timestamp;
    /** The card and the authentication of the payment. Set only if the kind is `shopper`. */
    card: FactCard | null;
    authentication: Authentication | null;
    /** The card network's ids of the payment. */
    scheme: SchemeData | null;
  } | null;
  /**
   * How the card that was charged without the cardholder was stored. Null if the first payment
   * stored it, or if the disputed payment is not a `charge`.
   */
  setup: {
    /**
     * `new_card` means that the bank verified the card, `plan_payment` that the cardholder paid
     * with it.
     */
    purpose: 'plan_payment' | 'new_card';
    at: Timestamp;
    card: FactCard;
    consent: AgreedConsent;
    authentication: Authentication | null;
  } | null;
  payments: {
    number: number;
    amount: number;
    due_on: string;
    status: string;
    collected_at: Timestamp | null;
  }[];
  refunds: { amount: number; status: string; created_at: Timestamp }[];
  messages: { kind: string; sent_at: Timestamp }[];
};

/** The pack lists only the newest refunds and messages, because the gateway limits the text. */
const listedMax = 100;

/** Everything about the order that supports our side, in one statement. */
export async function findFacts(
  db: Handle,
  {
    merchant_id,
    checkout_id,
    payment_ref,
  }: { merchant_id: string; checkout_id: string; payment_ref: string },
): Promise<Facts> {
  const utc = (column: string) =>
    sql`to_char(${sql.ref(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  const of = sql`merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`;
  const { rows } = await sql<Facts>`
    select c.client_reference_id, c.created_at as ordered_at, c.completed_at, c.amount, c.customer,
      c.line_items, c.number_of_payments,
      (select jsonb_build_object('brand', a.card_brand, 'last4', a.card_last4)
       from payment_attempts a where ${of} and a.status = 'authorised') as card,
      (select a.consent from payment_attempts a where ${of} and a.status = 'authorised') as consent,
      (select a.authentication from payment_attempts a where ${of} and a.status = 'authorised')
        as authentication,
      (select jsonb_build_object('kind', k.kind, 'at', ${utc('k.settled_at')},
         'card', case when s.id is not null
           then jsonb_build_object('brand', s.card_brand, 'last4', s.card_last4) end,
         'authentication', s.authentication,
         'scheme', coalesce(k.scheme,
           (select a.scheme from payment_attempts a
            where ${of} and a.payment_ref = k.payment_ref and a.scheme is not null limit 1)))
       from collections k
       left join payment_attempts s on s.merchant_id = k.merchant_id
         and s.checkout_id = k.checkout_id and s.payment_ref = k.payment_ref
         and s.status = 'charged' and k.kind = 'shopper'
       where k.merchant_id = ${merchant_id} and k.checkout_id = ${checkout_id}
         and k.payment_ref = ${payment_ref} and k.status = 'collected'
       order by k.instalment limit 1) as disputed,
      (select jsonb_build_object('purpose', s.purpose, 'at', ${utc('s.settled_at')},
         'card', jsonb_build_object('brand', s.card_brand, 'last4', s.card_last4),
         'consent', s.consent, 'authentication', s.authentication)
       from collections k
       join payment_attempts s on s.merchant_id = k.merchant_id
         and s.checkout_id = k.checkout_id and s.consent is not null
         and s.status in ('charged', 'verified')
       where k.merchant_id = ${merchant_id} and k.checkout_id = ${checkout_id}
         and k.payment_ref = ${payment_ref} and k.status = 'collected' and k.kind = 'charge'
         -- A charge that was recorded after a restore has no card. The shopper may have entered the
         -- same card again after the charge.
         and (s.card_ref = k.card_ref or k.card_ref is null) and s.settled_at <= k.created_at
       order by s.number desc limit 1) as setup,
      (select jsonb_agg(jsonb_build_object('number', i.number, 'amount', i.amount - i.reduced,
         'due_on', i.due_on, 'status', i.status, 'collected_at', ${utc('i.collected_at')})
         order by i.number)
       from instalments i where ${of}) as payments,
      coalesce((select jsonb_agg(jsonb_build_object('amount', r.amount, 'status', r.status,
         'created_at', ${utc('r.created_at')}) order by r.created_at, r.id)
       from (select * from refund_requests where ${of}
         order by created_at desc, id desc limit ${listedMax}) r), '[]') as refunds,
      coalesce((select jsonb_agg(jsonb_build_object('kind', m.kind, 'sent_at', ${utc('m.settled_at')})
         order by m.settled_at, m.id)
       from (select * from ${messagesOf({ merchant_id, checkout_id })} sent
         where status = 'sent' and kind <> 'evidence_asked'
         order by settled_at desc, id desc limit ${listedMax}) m), '[]') as messages
    from checkouts c
    where c.merchant_id = ${merchant_id} and c.id = ${checkout_id}`.execute(db);
  return rows[0] as Facts;
}
