import type { StatementDetails } from '#operating/operations/statement.schema.ts';
import { findStatementOf } from '#operating/operations/statements.sql.ts';
import {
  correctionAction,
  mustSeeStatement,
  readStatement,
  statementList,
} from '#operating/operations/statements.ts';
import { showMoney } from '#platform/shared/money.ts';
import { plural } from '#platform/shared/plural.ts';
import type { Issuer, MonthlyStatement } from '#purchases/payouts/monthly-statement.ts';
import {
  monthlyFormats,
  writeMonthlyStatement,
} from '#purchases/payouts/write-monthly-statement.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { actionCommand } from './action-command.ts';
import {
  type Command,
  type Context,
  command,
  mustBeId,
  oneOf,
  required,
  UsageError,
} from './command.ts';
import { type Connection, viewerOf, withMigrated } from './connect.ts';
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
  'corrects',
  'corrected_by',
] as const;

/** The issuer on a statement comes from the settings. */
const withIssuer = <T>(
  context: Context,
  work: (connection: Connection & { issuer: Issuer }) => Promise<T>,
): Promise<T> =>
  withMigrated(context, (connection) => work({ ...connection, issuer: connection.config.issuer }));

const list = listCommand(statementList, {
  name: 'statements list',
  help: `Lists the monthly statements of merchants, the newest first. A statement is made on the
first business day after its month, on the merchant's clock, for a merchant with terms.`,
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
        below: [
          row.merchant_name,
          plural(row.line_count, 'line'),
          row.id,
          row.corrects && `corrects ${row.corrects.reference}`,
        ],
      })),
    ),
});

const show = command({
  name: 'statements show',
  usage: ['--merchant ID --month 2026-11 [--format pdf|csv]', 'ID [--format pdf|csv]'],
  help: `Shows the sums of the statement with an ID, or of a merchant's statement for a month: the
newest one if it was corrected. With --format it prints the file that the merchant got: the same
bytes until a shopper in it is erased.

  tranche statements show --merchant ${example} \\
    --month 2026-11 --format pdf > statement.pdf`,
  options: {
    merchant: { type: 'string' },
    month: { type: 'string' },
    format: { type: 'string' },
  },
  optionalPositionals: ['ID'],
  async run(context) {
    const { values, terminal } = context;
    const format =
      values.format === undefined ? null : oneOf(values.format, monthlyFormats, 'format');
    const find = finderOf(context.positionals[0], values);
    if (format === 'pdf' && terminal.stdout.isTTY) {
      throw new UsageError('Send a PDF to a file: > statement.pdf');
    }
    await withIssuer(context, async (connection) => {
      const found = await find(connection);
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

/** A statement by its ID, or the newest one for a merchant and a month. */
function finderOf(
  id: string | undefined,
  { merchant, month }: { merchant?: string | undefined; month?: string | undefined },
): (connection: Connection) => Promise<MonthlyStatement> {
  if (id !== undefined) {
    if (merchant !== undefined || month !== undefined) {
      throw new UsageError('Give an ID, or --merchant and --month.');
    }
    return (connection) => mustSeeStatement(viewerOf(connection), id);
  }
  const merchant_id = mustBeId(required(merchant, 'merchant'), 'merchant');
  const first = readMonth(required(month, 'month'));
  return async ({ database }) => {
    const found = await findStatementOf(database.db, merchant_id, first);
    if (found) return found;
    throw new OperatorError(
      `The merchant has no statement for ${first.slice(0, 7)}. One is made on the first business day after a month that has entries.`,
    );
  };
}

const correct = actionCommand(correctionAction, {
  name: 'statements correct',
  help: `Issues a statement again under the next number, with the merchant's name, address, VAT
number and language, and your own details (ISSUER_NAME and others), as they are now. The new one has
the same lines and refers to the old one, which stays as it is. The command is refused while nothing
has changed. Amounts are not corrected this way: post an entry, which appears on the next statement.

  tranche statements correct ${example}`,
  open: withIssuer,
  json: (statement) => pick(statement, members),
  show: describe,
});

/** Returns the first day of the month. */
function readMonth(text: string): string {
  if (!/^2[01]\d{2}-(0[1-9]|1[0-2])$/.test(text)) {
    throw new UsageError('--month must be a month such as 2026-11.');
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
    ['Replaces', statement.corrects?.reference],
    ['Replaced by', statement.corrected_by?.reference],
  ]);
}

export const commands: Command[] = [list, show, correct];
