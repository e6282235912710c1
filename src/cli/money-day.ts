import { reading } from '../database/transaction.ts';
import { listTimeZones, type MoneyDay, sumMovements } from '../payouts/money-day.sql.ts';
import { timestamp } from '../shared/clock.ts';
import { showMoney } from '../shared/money.ts';
import { type CommandGroup, command, required } from './command.ts';
import { withMigrated } from './connect.ts';
import { readDate } from './merchant-fee.ts';
import { fields, showDate } from './terminal.ts';

const day = command({
  name: 'money day',
  summary: 'what moved on one day, by merchant',
  usage: ['--date DATE'],
  help: `Shows what was sold, collected, refunded and disputed on a local date, our fees with their
VAT, and what was paid out, for each merchant and to the cent. Times are on the merchants' clocks.

  tranche money day --date 2026-11-15`,
  options: { date: { type: 'string' } },
  async run(context) {
    const date = readDate(required(context.values.date, 'date'), 'date') as string;
    const rows = await withMigrated(context, (connection) =>
      reading(connection, async (db) => {
        const rows: (MoneyDay & { locale: string })[] = [];
        for (const { code, time_zone, locale } of await listTimeZones(db)) {
          const begins = Temporal.PlainDate.from(date);
          const [from, to] = [begins, begins.add({ days: 1 })].map((one) =>
            timestamp(one.toZonedDateTime({ timeZone: time_zone }).toInstant()),
          ) as [string, string];
          const found = await sumMovements(db, code, from, to);
          rows.push(...found.map((row) => ({ ...row, locale })));
        }
        return rows;
      }),
    );
    const data = rows.map(({ locale: _, ...row }) => row);
    context.print({ date, data }, () =>
      rows.length === 0
        ? `Nothing moved on ${showDate(date)}.`
        : rows
            .map((row) =>
              fields(context.terminal, [
                ['Merchant', `${row.merchant_name} (${row.merchant_id})`],
                ...figures.map(
                  ([label, name]) => [label, showMoney(row[name], row)] as [string, string],
                ),
              ]),
            )
            .join('\n\n'),
    );
  },
});

const figures = [
  ['Sold', 'sold'],
  ['Collected', 'collected'],
  ['Refunded', 'refunded'],
  ['Disputed', 'disputed'],
  ['Fees', 'fees'],
  ['VAT', 'vat'],
  ['Paid out', 'paid_out'],
] as const;

export const money: CommandGroup = {
  name: 'money',
  summary: 'what moved, by merchant',
  commands: [day],
};
