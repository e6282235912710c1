import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { compileOnce } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import { listAnswers } from '#purchases/conversations/conversation.sql.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import { listCardDeclines } from '#purchases/instalments/collection.sql.ts';
import type { CardDecline, Instalment } from '#purchases/instalments/instalment.ts';
import type { Message } from '#purchases/messages/message.ts';
import { listLinks } from '#purchases/payment-links/payment-link.sql.ts';
import type { ReadLink } from '#purchases/payment-links/payment-link.ts';
import type { RefundStatus } from '#purchases/refunds/refund.ts';

/** The facts that one merchant's messages are written from. */
export type MessageSources = {
  checkouts: Map<
    string,
    {
      id: string;
      merchant_id: string;
      amount: number;
      currency: string;
      client_reference_id: string;
      number_of_payments: number | null;
      customer: { email: string };
      language: Language | null;
      erased_at: Timestamp | null;
    }
  >;
  instalments: Map<string, Instalment[]>;
  /** The amounts that refunds have returned to the card or are returning, by payment. */
  refunded: Map<string, Refunded[]>;
  cards: Map<string, CardFace>;
  /** The cards that the messages name, by reference. */
  namedCards: Map<string, CardFace>;
  /**
   * Declines of cards. They are read only for checkouts with a `charge_soon` or `declined` message,
   * because those messages say which card to use.
   */
  declines: CardDecline[];
  /** The answers to shoppers that the messages are about, by their ids. */
  answers: Awaited<ReturnType<typeof listAnswers>>;
  /** The payment links that the messages are about. */
  links: Map<string, ReadLink>;
  /** The refunds and the disputes that the messages are about, by their ids. */
  refunds: Map<string, { id: string; status: RefundStatus; round: number } & RefundEffect>;
  disputes: Map<string, Pick<Dispute, 'status' | 'submitted_at' | 'asked_until'>>;
};

type Refunded = { checkout_id: string; instalment: number; sum: number };

/**
 * Whether a refund took something off payments that were not collected, and the amount that it
 * returned to the card.
 */
export type RefundEffect = { changesPlan: boolean; returned: number };

type CardFace = {
  card_ref: string;
  card_key: string | null;
  brand: string | null;
  last4: string | null;
  expires: string | null;
};

type Key = { merchant_id: string; checkout_ids: string[] };

const isOf = ({ checkout_ids }: Key, column: string) =>
  sql<boolean>`${sql.ref(column)} = any (${checkout_ids}::uuid[])`;

const selectSources = compileOnce((db, key: Key) =>
  together({
    checkouts: db
      .selectFrom('checkouts')
      .select(['id', 'merchant_id', 'amount', 'currency', 'client_reference_id'])
      .select(['number_of_payments', 'customer', 'language', 'erased_at'])
      .where('merchant_id', '=', key.merchant_id)
      .where(isOf(key, 'id')),
    instalments: db
      .selectFrom('instalments')
      .selectAll()
      .where('merchant_id', '=', key.merchant_id)
      .where(isOf(key, 'checkout_id'))
      .orderBy('checkout_id')
      .orderBy('number'),
    refunded: db
      .selectFrom('refund_parts')
      .select(['checkout_id', 'instalment', sql<number>`sum(amount)::bigint`.as('sum')])
      .where('merchant_id', '=', key.merchant_id)
      .where(isOf(key, 'checkout_id'))
      .where('kind', '=', 'card')
      .where('status', 'in', ['open', 'done'])
      .groupBy(['checkout_id', 'instalment']),
    cards: db
      .selectFrom('stored_cards')
      .select(['checkout_id', 'card_ref', 'card_key', 'brand', 'last4', 'expires'])
      .where('merchant_id', '=', key.merchant_id)
      .where(isOf(key, 'checkout_id')),
  }),
);

/** The id of the refund that a message is about. */
export const refundOf = ({ kind, about }: Pick<Message, 'kind' | 'about'>) =>
  kind === 'refunded' ? /^refund ([0-9a-f-]{36})/.exec(about)?.[1] : undefined;

async function listRefunds(
  db: Handle,
  merchant_id: string,
  ids: string[],
): Promise<MessageSources['refunds']> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('refund_requests as r')
    .leftJoin('refund_parts as p', (join) =>
      join
        .onRef('p.refund_id', '=', 'r.id')
        .onRef('p.merchant_id', '=', 'r.merchant_id')
        .on('p.status', '=', 'done'),
    )
    .select([
      'r.id',
      'r.status',
      sql<number>`coalesce(max(p.round), 1)`.as('round'),
      sql<boolean>`coalesce(bool_or(p.kind <> 'card'), false)`.as('changesPlan'),
      sql<number>`coalesce(sum(p.amount) filter (where p.kind = 'card'), 0)::bigint`.as('returned'),
    ])
    .where('r.merchant_id', '=', merchant_id)
    .where('r.id', 'in', ids)
    .groupBy(['r.id', 'r.status'])
    .execute();
  return new Map(rows.map((refund) => [refund.id, refund]));
}

async function listDisputes(
  db: Handle,
  merchant_id: string,
  ids: string[],
): Promise<MessageSources['disputes']> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('disputes')
    .select(['id', 'status', 'submitted_at', 'asked_until'])
    .where('merchant_id', '=', merchant_id)
    .where('id', 'in', ids)
    .execute();
  return new Map(rows.map(({ id, ...dispute }) => [id, dispute]));
}

const saysHowToPay = ({ kind }: Pick<Message, 'kind'>) =>
  kind === 'charge_soon' || kind === 'declined';

/**
 * Reads the facts for a whole batch in one statement. It needs one more statement if any message
 * names a replaced card, one if any says which card to pay with, one if any is an answer, one if
 * any is about a refund, one if any is about a dispute, and two if any is about a payment link.
 */
export async function listMessageSources(
  db: Handle,
  merchant_id: string,
  messages: Pick<Message, 'kind' | 'about' | 'checkout_id' | 'payment_link_id' | 'facts'>[],
  now: Temporal.Instant,
): Promise<MessageSources> {
  const unique = (ids: (string | null | undefined)[]) => [
    ...new Set(ids.filter((id) => typeof id === 'string')),
  ];
  const checkout_ids = unique(messages.map(({ checkout_id }) => checkout_id));
  const card_refs = unique(messages.map(({ facts }) => facts.card_ref));
  const entry_ids = unique(messages.map(({ facts }) => facts.entry));
  const link_ids = unique(messages.map(({ payment_link_id }) => payment_link_id));
  const refund_ids = unique(messages.map(refundOf));
  const dispute_ids = unique(messages.map(({ facts }) => facts.dispute));
  const paying = unique(messages.filter(saysHowToPay).map(({ checkout_id }) => checkout_id));
  const [rows] = await selectSources(db, { merchant_id, checkout_ids });
  assert(rows);
  const { cards } = rows;
  const missing = card_refs.filter((ref) => !cards.some(({ card_ref }) => card_ref === ref));
  const replaced =
    missing.length === 0
      ? []
      : await db
          .selectFrom('replaced_cards')
          .select(['card_ref', 'card_key', 'brand', 'last4', 'expires'])
          .where('merchant_id', '=', merchant_id)
          .where('checkout_id', 'in', checkout_ids)
          .where('card_ref', 'in', missing)
          .execute();
  return {
    checkouts: new Map(asRows(rows.checkouts).map((one) => [one.id, one])),
    instalments: Map.groupBy(asRows(rows.instalments), (one) => one.checkout_id),
    refunded: Map.groupBy(rows.refunded, (one) => one.checkout_id),
    cards: new Map(cards.map((one) => [one.checkout_id, one])),
    declines: paying.length === 0 ? [] : await listCardDeclines(db, merchant_id, paying, now),
    answers: await listAnswers(db, merchant_id, entry_ids),
    links: await listLinks(db, merchant_id, link_ids),
    refunds: await listRefunds(db, merchant_id, refund_ids),
    disputes: await listDisputes(db, merchant_id, dispute_ids),
    namedCards: new Map([...cards, ...replaced].map((one) => [one.card_ref, one])),
  };
}
