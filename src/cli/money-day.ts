import { moneyDayList, readMoneyTotals } from '#operating/operations/money.ts';
import { showMoney } from '#platform/shared/money.ts';
import { type Command, command, required } from './command.ts';
import { viewerOf, withMigrated } from './connect.ts';
import { readWhole } from './list-command.ts';
import { readDate } from './merchant-fee.ts';
import { pick } from './schema-options.ts';
import { fields, showDate } from './terminal.ts';

const day = command({
  name: 'money day',
  usage: ['--date DATE'],
  help: `Shows what was sold, collected, refunded and disputed on a local date, our fees with their
VAT, and what was paid out, for each merchant and to the cent. Times are on the merchants' clocks.
The gateway's account fees are those that it charges without a payment.

  tranche money day --date 2026-11-15`,
  options: { date: { type: 'string' } },
  async run(context) {
    const date = readDate(required(context.values.date, 'date'), 'date') as string;
    const { rows, fees } = await withMigrated(context, async (connection) => {
      const viewer = viewerOf(connection);
      const { account_fees } = await readMoneyTotals(viewer, { date });
      return { rows: await readWhole(moneyDayList, viewer, { date }), fees: account_fees ?? [] };
    });
    const data = rows.map((row) => pick(row, members));
    const account_fees = fees.map(({ locale: _, ...fee }) => fee);
    context.print({ date, data, account_fees }, () =>
      rows.length + fees.length === 0
        ? `Nothing moved on ${showDate(date)}.`
        : [
            ...rows.map((row) =>
              fields(context.terminal, [
                ['Merchant', `${row.merchant_name} (${row.merchant_id})`],
                ...figures.map(
                  ([label, name]) => [label, showMoney(row[name], row)] as [string, string],
                ),
              ]),
            ),
            ...fees.map((fee) =>
              fields(context.terminal, [["Gateway's account fees", showMoney(fee.amount, fee)]]),
            ),
          ].join('\n\n'),
    );
  },
});

/** The members of a merchant's day in --json. */
const members = [
  'merchant_id',
  'merchant_name',
  'currency',
  'sold',
  'collected',
  'refunded',
  'disputed',
  'fees',
  'vat',
  'paid_out',
] as const;

const figures = [
  ['Sold', 'sold'],
  ['Collected', 'collected'],
  ['Refunded', 'refunded'],
  ['Disputed', 'disputed'],
  ['Fees', 'fees'],
  ['VAT', 'vat'],
  ['Paid out', 'paid_out'],
] as const;

export const commands: Command[] = [day];
