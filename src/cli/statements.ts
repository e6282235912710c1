import type { StatementDetails } from '#operating/operations/statement.schema.ts';
import { findStatementOf } from '#operating/operations/statements.sql.ts';
import { readStatement, statementList } from '#operating/operations/statements.ts';
import { showMoney } from '#platform/shared/money.ts';
import {
  monthlyFormats,
  writeMonthlyStatement,
} from '#purchases/payouts/write-monthly-statement.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Command, command, mustBeId, oneOf, required, UsageError } from './command.ts';
import { viewerOf, withMigrated } from './connect.ts';
import { listCommand } from './list-command.ts';
import { pick } from './schema-options.ts';
import { fields, showTime, type Terminal, table } from './terminal.ts';

const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

const members = [
  'id',
  'merchant_id',
  'merchant_name',
  'number',
  'reference',
  'month',
  'created_at',
  'currency',
  'opening',
  'sales',
  'refunds',
  'disputes',
  'fees',
  'vat',
  'reserve',
  'paid',
  'closing',
  'line_count',
] as const;

const list = listCommand(statementList, {
  name: 'statements list',
  help: `Lists the monthly statements of merchants, the newest first. A statement is made on the first
business day after its month, on the merchant's clock, for a merchant with terms.`,
  example: `tranche statements list --merchant ${example}`,
  json: members,
  show: (terminal, rows) =>
    table(
      terminal,
      ['Number', 'Month', 'Fees and VAT', 'Balance'],
      rows.map((row) => ({
        cells: [
          row.reference,
          row.month.slice(0, 7),
          showMoney(-row.fees - row.vat, row),
          showMoney(row.closing, row),
        ],
        below: [row.merchant_name, `${row.line_count} lines`, row.id],
      })),
    ),
});

const show = command({
  name: 'statements show',
  usage: ['--merchant ID --month 2026-11 [--format pdf|csv]'],
  help: `Shows the sums of a merchant's statement of a month. With --format it prints the file that the
merchant got: the same bytes until a shopper in it is erased.

  tranche statements show --merchant ${example} \\
    --month 2026-11 --format pdf > statement.pdf`,
  options: {
    merchant: { type: 'string' },
    month: { type: 'string' },
    format: { type: 'string' },
  },
  async run(context) {
    const { values, terminal } = context;
    const merchant_id = mustBeId(required(values.merchant, 'merchant'), 'merchant');
    const month = readMonth(required(values.month, 'month'));
    const format =
      values.format === undefined ? null : oneOf(values.format, monthlyFormats, 'format');
    if (format === 'pdf' && terminal.stdout.isTTY) {
      throw new UsageError('Send a PDF to a file: > statement.pdf');
    }
    await withMigrated(context, async (connection) => {
      const found = await findStatementOf(connection.database.db, merchant_id, month);
      if (!found) {
        throw new OperatorError(
          `The merchant has no statement of ${month.slice(0, 7)}. One is made on the first business day after a month that has entries.`,
        );
      }
      if (format === null || context.json) {
        const statement = await readStatement(viewerOf(connection), found.id);
        context.print(pick(statement, members), () => describe(terminal, statement));
        return;
      }
      for await (const piece of writeMonthlyStatement(connection, found, format)) {
        terminal.stdout.write(piece);
      }
    });
  },
});

/** The first day of the month. */
function readMonth(text: string): string {
  if (!/^2[01]\d{2}-(0[1-9]|1[0-2])$/.test(text)) {
    throw new UsageError('--month is a month such as 2026-11.');
  }
  return `${text}-01`;
}

function describe(terminal: Terminal, statement: StatementDetails): string {
  const money = (cents: number) => showMoney(cents, statement);
  return fields(terminal, [
    ['Number', statement.reference],
    ['Merchant', `${statement.merchant_name} (${statement.merchant_id})`],
    ['Month', statement.month.slice(0, 7)],
    ['Made', showTime(statement.created_at)],
    ['Balance before', money(statement.opening)],
    ['Sales', money(statement.sales)],
    ['Refunds', money(statement.refunds)],
    ['Disputes', money(statement.disputes)],
    ['Fees', money(statement.fees)],
    ['VAT', money(statement.vat)],
    ['Reserve', money(statement.reserve)],
    ['Paid out', money(statement.paid)],
    ['Balance after', money(statement.closing)],
    ['Lines', String(statement.line_count)],
  ]);
}

export const statements: Command[] = [list, show];
