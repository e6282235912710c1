import { findMerchantRow } from '#merchants/merchant.sql.ts';
import { type MerchantRow, merchantNow } from '#merchants/merchant.ts';
import { payoutActions, payoutList } from '#operating/operations/payouts.ts';
import type { Viewer } from '#operating/operations/viewer.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { type BankFileDeps, type BankFormat, bankFormats } from '#purchases/payouts/bank-file.ts';
import { lineName } from '#purchases/payouts/line-names.ts';
import { sumLines } from '#purchases/payouts/payout.sql.ts';
import type { Payout, PayoutLine, Totals } from '#purchases/payouts/payout.ts';
import { readLines } from '#purchases/payouts/read-lines.ts';
import {
  type Export,
  exportPayouts,
  mustFindPayout,
  readExport,
} from '#purchases/payouts/review-payout.ts';
import {
  whyNotPrinted,
  writeStatementCsv,
  writeStatementHtml,
} from '#purchases/payouts/statement.ts';
import { writeStatementPdf } from '#purchases/payouts/statement-pdf.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { findRecordEnd } from '#record/alerts/publish-end.ts';
import { actionCommand } from './action-command.ts';
import { type Command, command, oneOf, UsageError } from './command.ts';
import { type Connection, withMigrated, withSealing } from './connect.ts';
import { listCommand } from './list-command.ts';
import { idOf } from './reference.ts';
import { withBankRun, withGateway } from './sandbox-gateway.ts';
import { pick } from './schema-options.ts';
import { showCommand } from './show-command.ts';
import { fields, fill, showDate, showTime, type Terminal, table } from './terminal.ts';

const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

type Shown = { payout: Payout; lines: PayoutLine[]; totals: Totals; merchant: MerchantRow };

async function read(connection: Connection, payout: Payout): Promise<Shown> {
  const { db } = connection.database;
  return {
    payout,
    lines: (await Array.fromAsync(readLines(connection, payout))).flat(),
    totals: await sumLines(db, payout),
    merchant: (await findMerchantRow(db, payout.merchant_id)) as MerchantRow,
  };
}

async function readAll(connection: Connection, payouts: Payout[]): Promise<Shown[]> {
  const shown: Shown[] = [];
  for (const payout of payouts) shown.push(await read(connection, payout));
  return shown;
}

/** The members of a payout in --json, besides its lines. */
const members = [
  'merchant_id',
  'id',
  'reference',
  'business_on',
  'amount',
  'currency',
  'status',
  'created_at',
  'first_approver',
  'approver',
  'approved_at',
  'compare_since',
  'export_id',
  'exported_at',
  'bank_account',
  'paid_at',
  'bank_reference',
  'returned_at',
  'return_reason',
  'return_noted_by',
] as const satisfies (keyof Payout)[];
const lineMembers = [
  'kind',
  'checkout_id',
  'client_reference_id',
  'gross',
  'fee',
  'vat',
  'net',
  'at',
] as const satisfies (keyof PayoutLine)[];

function present({ payout, lines }: Shown) {
  return { ...pick(payout, members), lines: lines.map((line) => pick(line, lineMembers)) };
}

const list = listCommand(payoutList, {
  name: 'payouts list',
  help: 'Lists payouts, the newest first. --json has their lines too.',
  example: 'tranche payouts list --status draft',
  complete: readAll,
  json: present,
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Reference', 'Status', 'Amount'],
      rows.map(({ payout, merchant }) => ({
        cells: [
          payout.id,
          payout.reference,
          payout.status,
          showMoney(payout.amount, merchant.territory),
        ],
        below: [merchant.name, `${payout.lines} lines`],
      })),
    ),
});

const linesShownMax = 50;

function describe(terminal: Terminal, { payout, lines, totals, merchant }: Shown): string {
  const money = (cents: number) => showMoney(cents, merchant.territory);
  const approvers = [payout.first_approver, payout.approver].filter((name) => name !== null);
  const { compare_since, paid_at, returned_at, return_noted_by: noted_by } = payout;
  const shown = lines.slice(0, linesShownMax);
  return [
    fields(terminal, [
      ['ID', payout.id],
      ['Merchant', `${merchant.name} (${merchant.id})`],
      ['Reference', payout.reference],
      ['Business day', showDate(payout.business_on)],
      ['Status', payout.status],
      ['Compare', compare_since && `with the bank, since ${showTime(compare_since)}`],
      ['Amount', money(payout.amount)],
      ['Fees and VAT', `${money(totals.fee)} and ${money(totals.vat)}`],
      ['Approved by', approvers.length === 0 ? 'no one yet' : approvers.join(' and ')],
      ['Export', payout.export_id],
      ['Paid', paid_at && `${showTime(paid_at)}, ${payout.bank_reference}`],
      ['Returned', returned_at && `${showTime(returned_at)}: ${payout.return_reason}`],
      [
        'Return noted',
        noted_by && `by ${noted_by}${returned_at ? '' : `: ${payout.return_reason}`}`,
      ],
    ]),
    table(
      terminal,
      ['Line', 'Kind', 'Order', 'Net'],
      shown.map((line) => [
        String(line.line),
        lineName(line.kind),
        line.client_reference_id ?? '',
        money(line.net),
      ]),
      'Order',
    ),
    ...(lines.length > shown.length
      ? [
          fill(
            `And ${lines.length - shown.length} more lines: \`tranche payouts statement ${payout.id}\`.`,
          ),
        ]
      : []),
  ].join('\n\n');
}

const show = showCommand({
  name: 'payouts show',
  of: 'payout',
  help: `Shows a payout, who approved it, and the lines that sum to its amount.

  tranche payouts show ${example}`,
  read: async ({ deps }, id) => read(deps, await mustFindPayout(deps.database.db, id)),
  json: present,
  show: describe,
});

/** The use case itself reports why money is stopped. */
const whileStopped: typeof withGateway = (context, work) =>
  withGateway(context, work, { whileStopped: true });

const changed = {
  open: whileStopped,
  complete: async ({ deps }: Viewer<Connection>, { id }: { id: string }): Promise<Shown> =>
    read(deps, await mustFindPayout(deps.database.db, id)),
  json: present,
  show: describe,
};

const approve = actionCommand(payoutActions.approve, {
  name: 'payouts approve',
  of: 'payout',
  help: `Approves a draft. The first approval is noted. The second one, by another operator, makes
the payout approved. The operator's name is TRANCHE_OPERATOR, or the system user.

  TRANCHE_OPERATOR=sipho \\
    tranche payouts approve ${example}`,
  ...changed,
});

const paid = actionCommand(payoutActions.paid, {
  name: 'payouts paid',
  of: 'payout',
  help: `Notes that the bank has paid an exported payout, with the bank's reference. After a restore it
also takes an approved payout that must be compared: the lost database had exported it.

  tranche payouts paid ${example} \\
    --bank-reference FT26320X1`,
  ...changed,
});

const confirm = actionCommand(payoutActions.confirm, {
  name: 'payouts confirm',
  of: 'payout',
  help: `After a restore from a backup, a payout that is not exported may have been paid by the bank: the
lost database exported it. None is exported until it is compared with the bank's statement. If the
bank has not paid it, confirm it, and two operators approve it again. If the bank has, two operators
approve it and \`payouts paid\` notes the bank's reference.

  tranche payouts confirm ${example} \\
    --reason 'not on the statement of 16 November'`,
  ...changed,
});

const returned = actionCommand(payoutActions.returned, {
  name: 'payouts returned',
  of: 'payout',
  help: `Notes that the bank returned a payout, before or after it had paid it. Once another operator
has confirmed it with the same command, the amount is owed to the merchant again and is a line of
its next payout.

  tranche payouts returned ${example} \\
    --reason 'account closed'`,
  ...changed,
});

const exportCommand = command({
  name: 'payouts export',
  usage: ['[--format csv|pain.001] [--export ID]'],
  help: `Prints a file of the approved payouts and marks them exported: each is in one export. A file has
at most 1,000 payouts; the command says when another export must follow. csv has a row for each,
with the amount in two decimals; pain.001 is the message of ISO 20022 that banks read
(pain.001.001.09), from the account that PAYOUT_FROM_ACCOUNT names. A payout whose merchant has no
confirmed bank account is not exported, and the command says so, and neither is one that was
approved for an earlier account, one whose account was confirmed too recently, or one that must be
compared with the bank after a restore. The file has whole account numbers: keep it where the bank
run is kept. If the output was lost, --export ID prints that export again, in either format, and
changes nothing; \`payouts show\` shows the ID. --json prints the payouts.

  tranche payouts export --format pain.001 > bank-run.xml`,
  options: { export: { type: 'string' }, format: { type: 'string' } },
  async run(context) {
    const earlier = context.values.export;
    const format = oneOf(context.values.format ?? 'csv', bankFormats, 'format');
    const readRows = async (connection: Connection, { payouts, ...made }: Export) => ({
      ...made,
      rows: await readAll(connection, payouts),
    });
    const { export_id, rows, refused, toApprove, toCompare, tooNew, isFull, file } =
      earlier === undefined
        ? await withBankRun(context, async (connection) =>
            readRows(connection, await exportPayouts(connection, connection.operator, format)),
          )
        : await withSealing(context, async (connection) =>
            readRows(connection, await readAgain(connection, earlier, format)),
          );
    if (context.json) {
      const named = (payouts: Payout[]) =>
        payouts.map(({ id, merchant_id, reference }) => ({ id, merchant_id, reference }));
      const left = {
        without_account: named(refused),
        to_approve_again: named(toApprove),
        to_compare: named(toCompare),
        new_account: named(tooNew),
      };
      context.print({ export_id, data: rows.map(present), ...left, is_full: isFull }, () => '');
      return;
    }
    context.terminal.stdout.write(file);
    for (const { reference, merchant_id } of refused) {
      context.terminal.warn(
        `${reference} was not exported: its merchant has no confirmed bank account. Set one with \`tranche merchants bank ${merchant_id}\`.`,
      );
    }
    for (const { id, reference } of toApprove) {
      context.terminal.warn(
        `${reference} was not exported: its merchant's bank account has changed since it was approved. Two operators must approve it again: \`tranche payouts approve ${id}\`.`,
      );
    }
    for (const { id, reference } of toCompare) {
      context.terminal.warn(
        `${reference} was not exported: after the restore it must be compared with the bank. \`tranche payouts confirm ${id}\` notes that the bank has not paid it.`,
      );
    }
    for (const { reference, payable_from } of tooNew) {
      context.terminal.warn(
        `${reference} was not exported: its bank account was confirmed too recently. It can be paid from ${showTime(payable_from)}.`,
      );
    }
    if (rows.length > 0) context.terminal.warn(`${rows.length} in export ${export_id}.`);
    if (isFull) context.terminal.warn('The file is full. Export again for the next payouts.');
    else if ([rows, refused, toApprove, toCompare, tooNew].every(({ length }) => length === 0))
      context.terminal.warn('No payout is approved.');
  },
});

async function readAgain(
  connection: Connection & BankFileDeps,
  export_id: string,
  format: BankFormat,
): Promise<Export> {
  const { payouts, file } = await readExport(connection, connection.operator, export_id, format);
  return {
    export_id,
    payouts,
    refused: [],
    toApprove: [],
    toCompare: [],
    tooNew: [],
    isFull: false,
    file,
  };
}

const formats = ['csv', 'json', 'html', 'pdf'] as const;

const statement = command({
  name: 'payouts statement',
  usage: ['ID [--format csv|json|html|pdf]'],
  help: `Prints the statement of a payout for the merchant: every line with gross, fee, VAT and net, in
CSV with two decimals and in JSON in cents. Column names do not change. html is a page to print,
with the tax invoice lines, of a statement of at most 2,000 lines; pdf is the same as a document,
of at most 20,000. ID may be the payout's reference.

  tranche payouts statement TR20261116-12 \\
    --format pdf > statement.pdf`,
  positionals: ['ID'],
  options: { format: { type: 'string' } },
  async run(context) {
    const [id = ''] = context.positionals;
    const format = context.json ? 'json' : oneOf(context.values.format ?? 'csv', formats, 'format');
    const { recordEnd, ...found } = await withMigrated(context, async (connection) => {
      const { db } = connection.database;
      const payout = await mustFindPayout(db, await idOf(connection, 'payout', id));
      const recordEnd = await findRecordEnd(db, payout.created_at);
      return { ...(await read(connection, payout)), recordEnd };
    });
    const { payout, lines, totals, merchant } = found;
    if (format === 'json') {
      const answer = { ...present(found), totals };
      context.print(answer, () => JSON.stringify(answer, null, 2));
      return;
    }
    const problem = format === 'csv' ? null : whyNotPrinted(payout, format);
    if (problem !== null) throw new OperatorError(problem);
    if (format === 'pdf') {
      if (context.terminal.stdout.isTTY)
        throw new UsageError('Send a PDF to a file: > statement.pdf');
      const now = timestamp(merchantNow(context.clock, merchant));
      const pieces = writeStatementPdf(payout, [lines], totals, merchant, recordEnd, now);
      for await (const piece of pieces) context.terminal.stdout.write(piece);
      return;
    }
    const pieces =
      format === 'csv'
        ? writeStatementCsv(payout, [lines])
        : writeStatementHtml(payout, [lines], totals, merchant, recordEnd);
    for await (const piece of pieces) context.terminal.stdout.write(piece);
  },
});

export const payouts: Command[] = [
  list,
  show,
  approve,
  confirm,
  exportCommand,
  paid,
  returned,
  statement,
];
