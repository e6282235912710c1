import { readBalance } from '#operating/operations/balances.ts';
import type { Balance } from '#operating/operations/money.schema.ts';
import { showMoney } from '#platform/shared/money.ts';
import { pick } from './schema-options.ts';
import { showCommand } from './show-command.ts';
import { fields, showDate, type Terminal, table } from './terminal.ts';

const members = [
  'merchant_id',
  'currency',
  'sums',
  'open',
  'owed',
  'payouts',
  'payout_count',
  'next_payout',
] as const satisfies (keyof Balance)[];
const payoutMembers = ['id', 'reference', 'business_on', 'status', 'amount'] as const;

const labels = [
  ['Sales', 'sale'],
  ['Refunds', 'refund'],
  ['Disputes', 'dispute'],
  ['Returned payouts', 'payout_returned'],
  ['Held back in reserve', 'withheld'],
  ['Fees', 'fee'],
  ['VAT on fees', 'vat'],
] as const;

export const balance = showCommand({
  name: 'merchants balance',
  help: `Shows what a merchant is owed now: the sales, refunds, disputes, fees and VAT that are not
in a payout yet, the payouts that the bank has not paid, the reserve that is held, and the next
payout as it stands. \`sums\` in --json are cents and add up to \`owed\`.

  tranche merchants balance 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c`,
  read: readBalance,
  json: (found) => ({
    ...pick(found, members),
    payouts: found.payouts.map((payout) => pick(payout, payoutMembers)),
  }),
  show: describe,
});

function describe(terminal: Terminal, found: Balance): string {
  const money = (cents: number) => showMoney(cents, found);
  const { sums, next_payout: next, payouts } = found;
  const facts = fields(terminal, [
    ['Merchant', `${found.merchant_name} (${found.merchant_id})`],
    ...labels.map(([label, name]) => [label, money(sums[name])] as [string, string]),
    ['Not in a payout yet', money(found.open)],
    ['Payouts not paid yet', money(sums.payouts)],
    ['Held in reserve', money(sums.reserve)],
    ['Owed in total', money(found.owed)],
    ['Next payout', next && `${money(Math.max(0, next.amount))} on ${showDate(next.business_on)}`],
  ]);
  if (payouts.length === 0) return facts;
  const rows = payouts.map(({ reference, status, amount }) => [reference, status, money(amount)]);
  return `${facts}\n\n${table(terminal, ['Payout', 'Status', 'Amount'], rows)}`;
}
