import {
  type CheckoutHistory,
  readCheckoutHistory,
} from '#operating/operations/checkout-history.ts';
import { timelineOf } from '#operating/operations/checkout-timeline.ts';
import { checkoutList } from '#operating/operations/checkouts.ts';
import { showMoney } from '#platform/shared/money.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { actorOf } from './audit.ts';
import { presentAttempt, presentCallback } from './callbacks.ts';
import type { Command } from './command.ts';
import { presentInstalment } from './instalments.ts';
import { listCommand, ownerFacts } from './list-command.ts';
import { presentPart, refundMembers } from './refund-details.ts';
import { pick } from './schema-options.ts';
import { showCommand } from './show-command.ts';
import {
  byDay,
  fields,
  shorten,
  showDate,
  showShortTime,
  type Terminal,
  table,
} from './terminal.ts';

const list = listCommand(checkoutList, {
  name: 'checkouts list',
  help: `Lists checkouts, the newest first, with the merchant, the order, the shopper, the term, and
what has been collected and is outstanding. --from and --to are days in the merchant's time zone,
both included. Times are in UTC, on the merchant's clock. With --amount or --gateway it lists only
checkouts that have ended.`,
  example: 'tranche checkouts list --limit 20',
  json: [
    'merchant_id',
    'id',
    'status',
    'amount',
    'currency',
    'number_of_payments',
    'created_at',
    'merchant_name',
    'time_zone',
    'client_reference_id',
    'email',
    'name',
    'collected',
    'outstanding',
  ],
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Created', 'Status', 'Amount'],
      rows.map((row) => {
        const money = (cents: number) => showMoney(cents, row);
        return {
          cells: [row.id, showShortTime(row.created_at), row.status, money(row.amount)],
          below: [
            ...ownerFacts(row),
            row.number_of_payments === null ? null : `term ${row.number_of_payments}`,
            row.status === 'successful' ? `collected ${money(row.collected)}` : null,
            row.outstanding > 0 ? `outstanding ${money(row.outstanding)}` : null,
          ],
        };
      }),
    ),
});

const show = showCommand({
  name: 'checkouts show',
  of: 'checkout',
  help: `Shows one checkout: its plan, its refunds, everything that happened to it in chronological
order (in UTC, on the merchant's clock), and its books.

  tranche checkouts show 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  async read({ deps, scope }, id) {
    const history = await readCheckoutHistory(deps, scope, id);
    if (!history) throw new OperatorError(`There is no checkout ${id}.`);
    return history;
  },
  json: present,
  show: describe,
});

const cardMembers = [
  'card_brand',
  'card_last4',
  'card_expires',
  'authentication',
  'scheme',
  'decline_reason',
  'decline_code',
  'network_decline_code',
  'created_at',
  'settled_at',
] as const;
const attemptMembers = [
  'number',
  'status',
  'number_of_payments',
  'amount',
  'payment_ref',
  ...cardMembers,
] as const;
const shopperAttemptMembers = [
  'number',
  'purpose',
  'status',
  'instalments',
  'amount',
  'payment_ref',
  'keeps_card',
  ...cardMembers,
] as const;

/** Leaves out sealed values, leases and the shopper's challenge. */
function present(history: CheckoutHistory) {
  const { merchant_id, integration_id, number: _, signed: __, ...checkout } = history.checkout;
  return {
    ...checkout,
    merchant_id,
    integration_id,
    attempts: history.attempts.map((attempt) => pick(attempt, attemptMembers)),
    callback: history.callback && {
      ...presentCallback(history.callback),
      history: history.callback_attempts.map(presentAttempt),
    },
    instalments: history.instalments.map(presentInstalment),
    collections: history.collections.map(
      ({ merchant_id, checkout_id, card_ref, customer_ref, ...rest }) => rest,
    ),
    shopper_attempts: history.planAttempts.map((attempt) =>
      pick({ ...attempt, keeps_card: attempt.consent !== null }, shopperAttemptMembers),
    ),
    refunds: history.refunds.map((refund) => ({
      ...pick(refund, refundMembers),
      parts: history.parts.filter(({ refund_id }) => refund_id === refund.id).map(presentPart),
    })),
    postings: history.postings.map(({ merchant_id, checkout_id, ...rest }) => rest),
    balances: history.balances,
    actions: history.actions,
    timeline: timelineOf(history, 'UTC').map(({ at, description }) => ({ at, description })),
  };
}

function describe(terminal: Terminal, history: CheckoutHistory): string {
  const { merchant, checkout, callback, instalments, refunds, postings, actions } = history;
  const money = (cents: number) => showMoney(cents, { ...merchant.territory, ...checkout });
  const { email, first_name = '', last_name = '' } = checkout.customer;
  const shopper = [`${first_name} ${last_name}`.trim(), email].filter((part) => part !== '');
  const sections = [
    fields(terminal, [
      ['ID', checkout.id],
      ['Merchant', `${merchant.id}  ${shorten(merchant.name, terminal.width - 49)}`],
      ['Reference', shorten(checkout.client_reference_id, terminal.width - 11)],
      ['Shopper', shorten(shopper.join(', '), terminal.width - 11)],
      ['Status', checkout.status],
      ['Amount', money(checkout.amount)],
      ['Gateway', checkout.gateway],
      ['Callback', callback?.status ?? 'none'],
    ]),
  ];
  const section = (heading: string, text: string) => {
    sections.push(`${terminal.accent(heading)}\n${text}`);
  };
  if (instalments.length > 0) {
    const rows = instalments.map((payment) => [
      String(payment.number),
      showDate(payment.due_on),
      payment.paused ? `${payment.status}, paused` : payment.status,
      money(payment.amount),
      payment.reduced === 0 ? '' : money(payment.reduced),
    ]);
    section('Plan', table(terminal, ['#', 'Due', 'Status', 'Amount', 'Refunds took'], rows));
  }
  if (refunds.length > 0) {
    const rows = refunds.map((refund, index) => [
      String(index + 1),
      refund.id,
      refund.status,
      money(refund.amount),
    ]);
    section('Refunds', table(terminal, ['#', 'ID', 'Status', 'Amount'], rows));
  }
  section(
    'Timeline',
    byDay(
      terminal,
      timelineOf(history, 'UTC').map(({ at, description }) => ({ at, cells: [description] })),
    ),
  );
  if (postings.length > 0) section('Books', describeBooks(terminal, history, money));
  if (actions.length > 0) {
    const rows = actions.map((one) => ({
      at: one.at,
      cells: [`${one.action} by ${actorOf(one)}`],
    }));
    section('Operators', byDay(terminal, rows));
  }
  return sections.join('\n\n');
}

function describeBooks(
  terminal: Terminal,
  { postings, balances }: CheckoutHistory,
  money: (cents: number) => string,
): string {
  const rows = postings.map(({ at, kind, debit, credit, amount, instalment }) => ({
    at,
    cells: [
      kind,
      `${credit} → ${debit}`,
      money(amount),
      instalment === null ? '' : `payment ${instalment}`,
    ],
  }));
  return [
    byDay(terminal, rows),
    fields(terminal, [
      ['Sold', money(-balances.sale)],
      ['Collected', money(balances.collected)],
      ['Outstanding', money(balances.outstanding)],
      ['Refunded', money(balances.refunded)],
      ['Cancelled', money(balances.cancelled)],
      ['Disputed', balances.disputed === 0 ? null : money(balances.disputed)],
      ['Held', money(balances.held)],
      ['Reserved', money(balances.reserved)],
    ]),
  ].join('\n\n');
}

export const commands: Command[] = [list, show];
