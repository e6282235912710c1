import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import {
  listTimeZones,
  type MoneyDay,
  sumAccountFees,
  sumMovements,
} from '#purchases/payouts/money-day.sql.ts';
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
The gateway's account fees are those that it charges without a payment.

  tranche money day --date 2026-11-15`,
  options: { date: { type: 'string' } },
  async run(context) {
    const date = readDate(required(context.values.date, 'date'), 'date') as string;
    const { rows, fees } = await withMigrated(context, (connection) =>
      reading(connection, (db) => readDay(db, date)),
    );
    const data = rows.map(({ locale: _, ...row }) => row);
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

type Located<T> = T & { locale: string };

async function readDay(db: Handle, date: string) {
  const rows: Located<MoneyDay>[] = [];
  const fees: Located<{ currency: string; amount: number }>[] = [];
  const territories = await listTimeZones(db);
  for (const { code, time_zone, locale } of territories) {
    const found = await sumMovements(db, code, ...rangeOf(date, time_zone));
    rows.push(...found.map((row) => ({ ...row, locale })));
  }
  // An account fee has no territory. Its day is that of the first territory with its currency.
  const zones = new Map(territories.toReversed().map((one) => [one.currency, one]));
  const elsewhere = { time_zone: 'UTC', locale: 'en' };
  for (const time_zone of new Set([...zones.values(), elsewhere].map((one) => one.time_zone))) {
    for (const fee of await sumAccountFees(db, ...rangeOf(date, time_zone))) {
      const zone = zones.get(fee.currency) ?? elsewhere;
      if (zone.time_zone === time_zone) fees.push({ ...fee, locale: zone.locale });
    }
  }
  return { rows, fees };
}

function rangeOf(date: string, timeZone: string): [from: Timestamp, to: Timestamp] {
  const begins = Temporal.PlainDate.from(date);
  const at = (day: Temporal.PlainDate) => timestamp(day.toZonedDateTime({ timeZone }).toInstant());
  return [at(begins), at(begins.add({ days: 1 }))];
}

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
