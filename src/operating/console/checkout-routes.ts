import { findMerchant } from '#merchants/merchant.sql.ts';
import { thresholdOf } from '#merchants/merchant.ts';
import { presentActions } from '#operating/operations/audit.ts';
import { presentCallback } from '#operating/operations/callbacks.ts';
import {
  CheckoutDetails,
  CreateNote,
  CreateRefund,
  MessageDetails,
  MessageParams,
  Note,
  PageQuery,
  RefundAmount,
  RefundPreview,
  TimelineEntry,
} from '#operating/operations/checkout.schema.ts';
import {
  type CheckoutHistory,
  readCheckoutHistory,
} from '#operating/operations/checkout-history.ts';
import { readMessage, readMessages, readNotes } from '#operating/operations/checkout-pages.ts';
import {
  explainWaiting,
  extrasOf,
  inOrder,
  presentMessage,
  timelineOf,
} from '#operating/operations/checkout-timeline.ts';
import { checkoutList } from '#operating/operations/checkouts.ts';
import { historyLimits } from '#operating/operations/history.sql.ts';
import { IdParams, pageOf } from '#operating/operations/list.schema.ts';
import type { PageRequest } from '#operating/operations/list.ts';
import { listMerchantNames } from '#operating/operations/owner.sql.ts';
import { RefundDetails } from '#operating/operations/refund.schema.ts';
import { listRefundSources } from '#operating/operations/refunds.sql.ts';
import { findRefunds, readRefund } from '#operating/operations/refunds.ts';
import { mustSee, scopeOf } from '#operating/operations/viewer.ts';
import type { Permission } from '#operating/people/permission.ts';
import { reading } from '#platform/database/transaction.ts';
import { traceIdOf } from '#platform/tracing/trace.ts';
import { sendAgain } from '#purchases/messages/sending/send-again.ts';
import { previewRefund } from '#purchases/refunds/preview-refund.ts';
import { sumAlone, sumRefundable } from '#purchases/refunds/refund.sql.ts';
import { needsSecondPerson } from '#purchases/refunds/refund.ts';
import { requestRefund } from '#purchases/refunds/request-refund.ts';
import { addNote } from '#record/notes/add-note.ts';
import type { Note as NoteRow } from '#record/notes/note.sql.ts';
import { notFound } from './errors.ts';
import { countRow, listRoutes, readPage, shopperRoute } from './pages.ts';
import { actionRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

export const checkoutRoutes: ConsoleRoute[] = [
  ...listRoutes(checkoutList),
  shopperRoute('checkouts', 'checkouts.read', CheckoutDetails, async (context, id) => {
    const history = await readCheckoutHistory(context.deps, context.scope, id, historyLimits);
    if (!history) throw notFound();
    return await presentDetails(context, history);
  }),
  consoleRoute({
    method: 'POST',
    changesNothing: true,
    url: '/api/checkouts/:id/refund-preview',
    permission: 'refunds.create',
    schema: { params: IdParams, body: RefundAmount, response: RefundPreview },
    async handle(context, { params, body }) {
      const row = await mustSee(context, 'checkouts', params.id);
      const { deps, scope } = context;
      const preview = await previewRefund(deps, row.id, body.amount);
      const { sources, alone, merchant } = await reading(deps, async (db) => ({
        sources: await listRefundSources(db, scope, [row]),
        alone: await sumAlone(db, row),
        merchant: (await listMerchantNames(db, scope, [row.merchant_id])).get(row.merchant_id),
      }));
      const { instalments = [], returned } = sources.get(row.checkout_id) ?? {};
      const { amount, refusal } = preview;
      return {
        ...preview,
        after: planAfter(instalments, returned ?? new Map(), preview.parts),
        needs_second_person:
          refusal === null &&
          needsSecondPerson(
            alone + amount,
            thresholdOf(deps, merchant ?? { four_eyes_above: null }),
          ),
      };
    },
  }),
  actionRoute({
    url: '/api/checkouts/:id/refunds',
    permission: 'refunds.create',
    fresh: true,
    schema: { params: IdParams, body: CreateRefund, response: RefundDetails },
    async run(context, { params, body }) {
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
  consoleRoute({
    url: '/api/checkouts/:id/notes',
    permission: 'checkouts.read',
    schema: { params: IdParams, query: PageQuery, response: pageOf(Note) },
    async handle(context, { params, query }) {
      const { data, next } = await readPage(query, (page) => readNotes(context, params.id, page));
      const [first] = data;
      if (first) await countOrder(context, params.id, first);
      return { data: data.map(presentNote), next };
    },
  }),
  consoleRoute({
    url: '/api/checkouts/:id/messages',
    permission: 'checkouts.read',
    schema: { params: IdParams, query: PageQuery, response: pageOf(TimelineEntry) },
    async handle(context, { params, query }) {
      const read = (page: PageRequest) => readMessages(context, params.id, page);
      const { data, next } = await readPage(query, read);
      return { data: data.map(presentMessage), next };
    },
  }),
  consoleRoute({
    url: '/api/checkouts/:id/messages/:message',
    permission: 'messages.read',
    schema: { params: MessageParams, response: MessageDetails },
    async handle(context, { params }) {
      const message = await readMessage(context, params.id, params.message);
      await countOrder(context, params.id, message);
      return message;
    },
  }),
  actionRoute({
    url: '/api/checkouts/:id/messages/:message/send-again',
    permission: 'messages.answer',
    schema: { params: MessageParams, response: MessageDetails },
    async run(context, { params }) {
      const { deps, operator } = context;
      const { id, merchant_id } = await mustSee(context, 'checkouts', params.id);
      const merchant = await reading(deps, (db) => findMerchant(db, deps.clock, merchant_id));
      if (!merchant) throw notFound();
      await sendAgain(deps, operator, merchant, id, params.message);
      return () => readMessage(context, id, params.message);
    },
  }),
  actionRoute({
    url: '/api/checkouts/:id/notes',
    permission: 'notes.write',
    schema: { params: IdParams, body: CreateNote, response: Note },
    async run(context, { params, body }) {
      const checkout = await mustSee(context, 'checkouts', params.id);
      const note = await addNote(context.deps, context.operator, checkout, body.text);
      return () => presentNote({ ...note, name: context.person.name });
    },
  }),
];

/** Counts a part of an order's page. The page and all its parts count once. */
const countOrder = (context: Context, id: string, { merchant_id }: { merchant_id: string }) =>
  countRow(context, 'checkouts', { id, merchant_id });

const presentNote = (note: NoteRow) => ({
  ...note,
  by: { person_id: note.person_id, name: note.name },
});

/** Returns the payments as they would be after a refund. */
function planAfter(
  instalments: CheckoutHistory['instalments'],
  returned: ReadonlyMap<number, number>,
  planned: { instalment: number; kind: string; amount: number }[],
): RefundPreview['after'] {
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

/** The payments of the plan, each with its last decline. */
const presentPlan = ({ instalments, collections }: CheckoutHistory) =>
  instalments.map((payment) => {
    const last = collections.findLast(
      ({ instalment, decline_reason }) => instalment === payment.number && decline_reason !== null,
    );
    const { decline_reason = null, may_retry = null } = last ?? {};
    return { ...payment, reason: decline_reason, may_retry };
  });

/** The entries of the timeline that need more than the right to read a checkout. */
const entryPermissions: Partial<Record<TimelineEntry['kind'], Permission>> = {
  callback: 'callbacks.read',
  conversation: 'messages.read',
  dispute: 'disputes.read',
};

async function presentDetails(
  context: Context,
  history: CheckoutHistory,
): Promise<CheckoutDetails> {
  const { deps, may } = context;
  const { merchant, checkout, instalments, postings, balances, callback, cut } = history;
  const { first_name, last_name, email, phone_number, billing_address } = checkout.customer;
  const scope = scopeOf(context, { merchant: merchant.id });
  const ids = history.refunds.map(({ id }) => id);
  const refunds = await findRefunds(context, ids, scope);
  const isPaid = checkout.status === 'successful';
  const mayRead = ({ kind }: Pick<TimelineEntry, 'kind'>) =>
    may(entryPermissions[kind] ?? 'checkouts.read');
  const aboutDispute = ({ action }: { action: string }) => action.startsWith('disputes ');
  const actions = history.actions.filter((one) => may('disputes.read') || !aboutDispute(one));
  return {
    ...checkout,
    merchant_name: merchant.name,
    time_zone: merchant.territory.time_zone,
    locale: merchant.territory.locale,
    clock_ahead_ms: merchant.clock_ahead_ms,
    email,
    name: [first_name, last_name].filter(Boolean).join(' ') || null,
    collected: sumOf(instalments.filter(({ status }) => status === 'collected')),
    outstanding: sumOf(
      instalments.filter(({ status }) => status !== 'collected' && status !== 'cancelled'),
    ),
    trace_id: deps.tracer && traceIdOf(checkout.id),
    phone_number: phone_number ?? null,
    billing_address: billing_address ?? null,
    is_v1: checkout.sealed_verify !== null,
    card: history.card,
    refunded: balances.refunded,
    cancelled: balances.cancelled,
    refundable: isPaid ? await reading(deps, (db) => sumRefundable(db, checkout)) : 0,
    plan: presentPlan(history),
    waiting: explainWaiting(history),
    timeline: inOrder([...timelineOf(history), ...extrasOf(history)].filter(mayRead)),
    attempts: history.attempts,
    collections: history.collections,
    callback:
      callback && may('callbacks.read')
        ? presentCallback({ callback, attempts: history.callback_attempts })
        : null,
    refunds: refunds.sort((one, other) => one.number - other.number),
    postings: may('money.read') ? postings : [],
    balances: may('money.read') ? balances : {},
    audit: await presentActions(context, actions),
    disputes: may('disputes.read') ? history.disputes : [],
    notes: history.notes.map(presentNote),
    cut,
  };
}

const sumOf = (payments: { amount: number; reduced: number }[]) =>
  payments.reduce((sum, { amount, reduced }) => sum + amount - reduced, 0);
