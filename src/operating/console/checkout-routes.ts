import type Type from 'typebox';
import {
  CheckoutDetails,
  CheckoutsPage,
  CheckoutsQuery,
  CreateNote,
  CreateRefund,
  Note,
  RefundAmount,
  RefundPreview,
} from '#operating/operations/checkout.schema.ts';
import {
  type CheckoutHistory,
  extrasOf,
  inOrder,
  readCheckoutHistory,
  timelineOf,
} from '#operating/operations/checkout-history.ts';
import { type Column, decimal, whoseColumns } from '#operating/operations/csv.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { listMerchantNames, listRefundSources } from '#operating/operations/lists.sql.ts';
import {
  findRefundsToReview,
  type ListedCheckout,
  listCheckouts,
} from '#operating/operations/lists.ts';
import { RefundDetails } from '#operating/operations/refund.schema.ts';
import { reading } from '#platform/database/transaction.ts';
import { traceIdOf } from '#platform/tracing/trace.ts';
import { previewRefund } from '#purchases/refunds/preview-refund.ts';
import { sumAskedAlone, sumRefundable } from '#purchases/refunds/refund.sql.ts';
import { needsSecondPerson, returnedOf } from '#purchases/refunds/refund.ts';
import { requestRefund } from '#purchases/refunds/request-refund.ts';
import { balancesOf } from '#record/ledger/posting.ts';
import { addNote } from '#record/notes/add-note.ts';
import { presentActions } from './audit-routes.ts';
import { presentCallback } from './callback-routes.ts';
import { notFound } from './errors.ts';
import { listRoutes, mustSee, scopeOf } from './pages.ts';
import { presentRefund, readRefund } from './refund-routes.ts';
import { actRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Query = Type.Static<typeof CheckoutsQuery>;

function readList(context: Context, query: Query) {
  const { status, from, to } = query;
  const days = validated(() => ({ from: from && plainDay(from), to: to && plainDay(to) }));
  return (page: { after: string | null; limit: number }) =>
    listCheckouts(context.deps, scopeOf(context, query), page, { status, ...days });
}

const plainDay = (text: string) => Temporal.PlainDate.from(text).toString();

/** A day such as 2026-02-30 has the right form and does not exist. */
function validated<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) throw notFound('There is no such day.');
    throw error;
  }
}

const columns: Column<ListedCheckout>[] = [
  ['Created', (row) => row.created_at],
  ...whoseColumns,
  ['Status', (row) => row.status],
  ['Payments', (row) => row.number_of_payments],
  ['Amount', (row) => Number(decimal(row.amount))],
  ['Collected', (row) => Number(decimal(row.collected))],
  ['Outstanding', (row) => Number(decimal(row.outstanding))],
  ['Currency', (row) => row.currency],
  ['ID', (row) => row.id],
];

export const checkoutRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'checkouts',
    permission: 'checkouts.read',
    query: CheckoutsQuery,
    page: CheckoutsPage,
    columns,
    read: readList,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/checkouts/:id',
    permission: 'checkouts.read',
    schema: { params: IdParams, response: CheckoutDetails },
    async handle(context, { params }) {
      const history = await readCheckoutHistory(context.deps, context.person.scope, params.id);
      if (!history) throw notFound();
      return await presentDetails(context, history);
    },
  }),
  consoleRoute({
    method: 'POST',
    changesNothing: true,
    url: '/api/checkouts/:id/refund-preview',
    permission: 'refunds.create',
    schema: { params: IdParams, body: RefundAmount, response: RefundPreview },
    async handle(context, { params, body }) {
      const row = await mustSee(context, 'checkouts', params.id);
      const { deps, person } = context;
      const preview = await previewRefund(deps, row.id, body.amount);
      const { sources, alone, merchant } = await reading(deps, async (db) => ({
        sources: await listRefundSources(db, person.scope, [row]),
        alone: await sumAskedAlone(db, row.merchant_id, row.checkout_id),
        merchant: (await listMerchantNames(db, person.scope, [row.merchant_id])).get(
          row.merchant_id,
        ),
      }));
      const { instalments = [], parts = [] } = sources.get(row.checkout_id) ?? {};
      const { amount, currency, remainder, refusal, warnings } = preview;
      return {
        amount,
        currency,
        remainder,
        parts: preview.parts,
        after: planAfter(instalments, parts, preview.parts),
        refusal,
        warnings,
        needs_second_person:
          refusal === null &&
          needsSecondPerson(alone + amount, merchant ?? { four_eyes_above: null }),
      };
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/checkouts/:id/refunds',
    permission: 'refunds.create',
    fresh: true,
    schema: { params: IdParams, body: CreateRefund, response: RefundDetails },
    async act(context, { params, body }) {
      const { id } = await mustSee(context, 'checkouts', params.id);
      const { deps, operator } = context;
      const refund = await requestRefund(deps, operator, {
        request_id: body.request_id.toLowerCase(),
        checkout_id: id,
        amount: body.amount,
        reason: body.reason ?? null,
      });
      return () => readRefund(context, refund);
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/checkouts/:id/notes',
    permission: 'notes.write',
    schema: { params: IdParams, body: CreateNote, response: Note },
    async act(context, { params, body }) {
      const checkout = await mustSee(context, 'checkouts', params.id);
      const note = await addNote(context.deps, context.operator, checkout, body.text);
      return () => presentNote({ ...note, name: context.person.name });
    },
  }),
];

const presentNote = (note: CheckoutHistory['notes'][number]) => ({
  id: note.id,
  at: note.at,
  by: { person_id: note.person_id, name: note.name },
  text: note.text,
});

type Sources = {
  instalments: CheckoutHistory['instalments'];
  parts: CheckoutHistory['parts'];
};

/** The payments as they would be after a refund. */
function planAfter(
  instalments: Sources['instalments'],
  earlier: Sources['parts'],
  planned: { instalment: number; kind: string; amount: number }[],
): RefundPreview['after'] {
  const returned = returnedOf(earlier);
  return instalments.map(({ number, amount, reduced, status }) => {
    const taken = planned.filter(({ instalment }) => instalment === number);
    const sum = (kinds: string[]) =>
      taken.filter(({ kind }) => kinds.includes(kind)).reduce((all, one) => all + one.amount, 0);
    const left = amount - reduced - sum(['cancel', 'hold']);
    return {
      number,
      amount: left,
      status: left === 0 && status !== 'collected' ? 'cancelled' : status,
      returned: (returned.get(number) ?? 0) + sum(['card']),
    };
  });
}

async function presentDetails(
  context: Context,
  history: CheckoutHistory,
): Promise<CheckoutDetails> {
  const { merchant, checkout, instalments, collections, postings } = history;
  const { first_name, last_name, email, phone_number, billing_address } = checkout.customer;
  const balances = balancesOf(postings);
  const mayReadMoney = context.person.permissions.includes('money.read');
  const ids = history.refunds.map(({ id }) => id);
  const scope = scopeOf(context, { merchant: merchant.id });
  const refunds = await findRefundsToReview(context.deps, scope, ids);
  const plan = instalments.map((payment) => {
    const last = collections.findLast(
      ({ instalment, decline_reason }) => instalment === payment.number && decline_reason !== null,
    );
    const { number, amount, reduced, status, due_on, due_at, collected_at, declines } = payment;
    return {
      number,
      amount,
      reduced,
      status,
      due_on,
      due_at,
      collected_at,
      declines,
      reason: last?.decline_reason ?? null,
      may_retry: last?.may_retry ?? null,
      payment_ref: payment.payment_ref,
      paused: payment.paused,
    };
  });
  const refundable =
    checkout.status === 'successful'
      ? await reading(context.deps, (db) => sumRefundable(db, checkout))
      : 0;
  return {
    id: checkout.id,
    merchant_id: merchant.id,
    merchant_name: merchant.name,
    time_zone: merchant.territory.time_zone,
    locale: merchant.territory.locale,
    client_reference_id: checkout.client_reference_id,
    email,
    name: [first_name, last_name].filter(Boolean).join(' ') || null,
    status: checkout.status,
    amount: checkout.amount,
    currency: checkout.currency,
    number_of_payments: checkout.number_of_payments,
    created_at: checkout.created_at,
    collected: sumOf(instalments.filter(({ status }) => status === 'collected')),
    outstanding: sumOf(
      instalments.filter(({ status }) => status !== 'collected' && status !== 'cancelled'),
    ),
    number: checkout.number,
    integration_id: checkout.integration_id,
    trace_id: context.deps.tracer && traceIdOf(checkout.id),
    phone_number: phone_number ?? null,
    billing_address: billing_address ?? null,
    line_items: checkout.line_items.map(({ name, amount, quantity }) => ({
      name,
      amount,
      quantity,
    })),
    terms: checkout.terms,
    language: checkout.language,
    notify_url: checkout.notify_url,
    success_url: checkout.success_url,
    cancel_url: checkout.cancel_url,
    signed: checkout.signed,
    is_v1: checkout.sealed_verify !== null,
    expires_at: checkout.expires_at,
    completed_at: checkout.completed_at,
    erased_at: checkout.erased_at,
    card: history.card,
    refunded: balances.refunded,
    cancelled: balances.cancelled,
    refundable,
    plan,
    timeline: inOrder([...timelineOf(history), ...extrasOf(history)]),
    attempts: history.attempts.map((attempt) => ({
      id: attempt.id,
      number: attempt.number,
      status: attempt.status,
      amount: attempt.amount,
      number_of_payments: attempt.number_of_payments,
      card_brand: attempt.card_brand,
      card_last4: attempt.card_last4,
      decline_reason: attempt.decline_reason,
      may_retry: attempt.may_retry,
      payment_ref: attempt.payment_ref,
      created_at: attempt.created_at,
      settled_at: attempt.settled_at,
    })),
    collections: collections.map((one) => ({
      id: one.id,
      instalment: one.instalment,
      number: one.number,
      kind: one.kind,
      status: one.status,
      amount: one.amount,
      payment_ref: one.payment_ref,
      decline_reason: one.decline_reason,
      may_retry: one.may_retry,
      created_at: one.created_at,
      settled_at: one.settled_at,
    })),
    callback: history.callback && presentCallback(history.callback, history.callback_attempts),
    refunds: refunds.data
      .sort((one, other) => one.number - other.number)
      .map((refund) => {
        const { waits_for: _, ...row } = presentRefund(context, refund);
        return row;
      }),
    postings: mayReadMoney
      ? postings.map(({ id, at, kind, debit, credit, amount, instalment, refund_id }) => ({
          id,
          at,
          kind,
          debit,
          credit,
          amount,
          instalment,
          refund_id,
        }))
      : [],
    balances: mayReadMoney ? balances : {},
    audit: await presentActions(context, history.actions),
    disputes: context.person.permissions.includes('disputes.read')
      ? history.disputes.map(({ id, instalment, amount, status, reason, created_at, due_by }) => ({
          id,
          instalment,
          amount,
          status,
          reason,
          created_at,
          due_by,
        }))
      : [],
    notes: history.notes.map(presentNote),
  };
}

const sumOf = (payments: { amount: number; reduced: number }[]) =>
  payments.reduce((sum, { amount, reduced }) => sum + amount - reduced, 0);
