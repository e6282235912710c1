import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import { payoutActions, payoutList } from '#operating/operations/payouts.ts';
import type { Viewer } from '#operating/operations/viewer.ts';
import { showMoney } from '#platform/shared/money.ts';
import { plural } from '#platform/shared/plural.ts';
import { findAccountInUse } from '#purchases/payouts/bank-account.sql.ts';
import type { BankAccount } from '#purchases/payouts/bank-account.ts';
import { bankFormats } from '#purchases/payouts/bank-file.ts';
import { lineName } from '#purchases/payouts/line-names.ts';
import { listLines, sumLines } from '#purchases/payouts/payout.sql.ts';
import {
  hasBankFile,
  type Payout,
  type PayoutLine,
  type Totals,
} from '#purchases/payouts/payout.ts';
import { readLines } from '#purchases/payouts/read-lines.ts';
import {
  approvePayout,
  type Export,
  exportPayouts,
  type LeftOut,
  mustFindPayout,
  readExport,
} from '#purchases/payouts/review-payout.ts';
import { whyNotPrinted } from '#purchases/payouts/statement.ts';
import { writeStatement } from '#purchases/payouts/write-statement.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { actionCommand } from './action-command.ts';
import { type Command, type Context, command, oneOf, UsageError } from './command.ts';
import { type Connection, withMigrated } from './connect.ts';
import { readInteger } from './duration.ts';
import { listCommand } from './list-command.ts';
import { idOf } from './reference.ts';
import { withBankRun, withGateway } from './sandbox-gateway.ts';
import { pick } from './schema-options.ts';
import { showCommand } from './show-command.ts';
import { fields, fill, showDate, showTime, type Terminal, table } from './terminal.ts';

const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';
const linesShownMax = 50;

type Shown = { payout: Payout; lines: PayoutLine[]; totals: Totals; merchant: MerchantRow };
/** One payout, with the merchant's account in use. */
type ShownAlone = Shown & { account: BankAccount | null };

/** A payout may have a hundred thousand lines. All of them are read only for --json. */
async function read(connection: Connection, payout: Payout, isJson: boolean): Promise<Shown> {
  const { db } = connection.database;
  return {
    payout,
    lines: isJson
      ? (await Array.fromAsync(readLines(connection, payout))).flat()
      : await listLines(db, payout, { first: 1, last: linesShownMax }),
    totals: await sumLines(db, payout),
    merchant: (await findMerchantRow(db, payout.merchant_id)) as MerchantRow,
  };
}

async function readOne(connection: Connection, id: string, isJson: boolean): Promise<ShownAlone> {
  const { db } = connection.database;
  const payout = await mustFindPayout(db, id);
  const account = await findAccountInUse(db, payout.merchant_id);
  return { ...(await read(connection, payout, isJson)), account };
}

async function readAll(
  connection: Connection,
  payouts: Payout[],
  isJson: boolean,
): Promise<Shown[]> {
  const shown: Shown[] = [];
  for (const payout of payouts) shown.push(await read(connection, payout, isJson));
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
        below: [merchant.name, plural(payout.lines, 'line')],
      })),
    ),
});

const nameAccount = ({ number, last4 }: BankAccount) => `account ${number}, which ends in ${last4}`;

function describe(terminal: Terminal, found: ShownAlone): string {
  const { payout, lines, totals, merchant, account } = found;
  const money = (cents: number) => showMoney(cents, merchant.territory);
  const approvers = [payout.first_approver, payout.approver].filter((name) => name !== null);
  const { compare_since, paid_at, returned_at, return_noted_by: noted_by } = payout;
  return [
    fields(terminal, [
      ['ID', payout.id],
      ['Merchant', `${merchant.name} (${merchant.id})`],
      ['Reference', payout.reference],
      ['Business day', showDate(payout.business_on)],
      ['Status', payout.status],
      ['To compare', compare_since && `with the bank’s records, since ${showTime(compare_since)}`],
      ['Amount', money(payout.amount)],
      ['Fees and VAT', `${money(totals.fee)} and ${money(totals.vat)}`],
      ['Account in use', account ? nameAccount(account) : 'none confirmed'],
      ['Approved by', approvers.length === 0 ? 'no one yet' : approvers.join(' and ')],
      ['Approved for', approvers.length > 0 ? `account ${payout.bank_account ?? 'none'}` : null],
      ['Bank run', hasBankFile(payout) ? payout.export_id : null],
      ['Paid', paid_at && `${showTime(paid_at)}, ${payout.bank_reference}`],
      ['Returned', returned_at && `${showTime(returned_at)}: ${payout.return_reason}`],
      [
        'Return recorded',
        noted_by && `by ${noted_by}${returned_at ? '' : `: ${payout.return_reason}`}`,
      ],
    ]),
    table(
      terminal,
      ['Line', 'Kind', 'Order', 'Net'],
      lines.map((line) => [
        String(line.line),
        lineName(line.kind),
        line.client_reference_id ?? '',
        money(line.net),
      ]),
      'Order',
    ),
    ...(payout.lines > lines.length
      ? [
          fill(
            `And ${plural(payout.lines - lines.length, 'more line')}: \`tranche payouts statement ${payout.id}\`.`,
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
  read: ({ deps }, id, isJson) => readOne(deps, id, isJson),
  json: present,
  show: describe,
});

/** The use case itself reports why money is stopped. */
const whileStopped: typeof withGateway = (context, work) =>
  withGateway(context, work, { whileStopped: true });

const changed = {
  open: whileStopped,
  complete: ({ deps }: Viewer<Connection>, { id }: { id: string }, isJson: boolean) =>
    readOne(deps, id, isJson),
  json: present,
  show: describe,
};

const approve = command({
  name: 'payouts approve',
  usage: ['ID [--account NUMBER|none]'],
  help: `Approves a draft payout. The first approval is only recorded; the payout is approved by the
second, from another operator. The operator's name is TRANCHE_OPERATOR, or the system user. Both
approvals are for the bank account in use. With --account the payout is approved only if that
account is still in use: \`payouts show\` shows its number.

  TRANCHE_OPERATOR=sipho \\
    tranche payouts approve ${example} --account 1`,
  positionals: ['ID'],
  options: { account: { type: 'string' } },
  async run(context) {
    const [text = ''] = context.positionals;
    const seen = readSeen(context.values.account);
    const found = await whileStopped(context, async (deps) => {
      const id = await idOf(deps, 'payout', text);
      await approvePayout(deps, deps.operator, id, seen);
      return await readOne(deps, id, context.json);
    });
    context.print(present(found), () => describe(context.terminal, found));
  },
});

function readSeen(account: string | undefined): number | null | undefined {
  if (account === undefined) return undefined;
  return account === 'none' ? null : readInteger(account, 'account');
}

const paid = actionCommand(payoutActions.paid, {
  name: 'payouts paid',
  of: 'payout',
  help: `Records that the bank has paid an exported payout, with the bank's reference. After a
restore it also accepts an approved payout that must be compared, because the lost database had
exported it.

  tranche payouts paid ${example} \\
    --bank-reference FT26320X1`,
  ...changed,
});

const confirm = actionCommand(payoutActions.confirm, {
  name: 'payouts confirm',
  of: 'payout',
  help: `Records, after a restore from a backup, that the bank has not paid a payout. The bank may
have paid payouts that are not exported here, because the lost database had exported them. So none
is exported until it has been compared with the bank's statement. If the bank has not paid it,
confirm it; two operators then approve it again. If the bank has paid it, two operators approve it,
and \`payouts paid\` records the bank's reference.

  tranche payouts confirm ${example} \\
    --reason 'not on the statement of 16 November'`,
  ...changed,
});

const returned = actionCommand(payoutActions.returned, {
  name: 'payouts returned',
  of: 'payout',
  without: ['as_first'],
  help: `Records that the bank returned a payout, whether or not it was recorded as paid. Once
another operator has confirmed this with the same command, the amount is owed to the merchant again
and is a line of its next payout.

  tranche payouts returned ${example} \\
    --reason 'account closed'`,
  ...changed,
});

const exportCommand = command({
  name: 'payouts export',
  usage: ['[--format csv|pain.001] [--export ID]'],
  help: `Prints a file of the approved payouts and marks them exported: each is in one export. A
file has at most 1,000 payouts; the command says when another export must follow. csv has a row for
each payout, with the amount to two decimals; pain.001 is the ISO 20022 message that banks read
(pain.001.001.09), from the account that PAYOUT_FROM_ACCOUNT names. A payout is not exported, and
the command says so, if its merchant has no confirmed bank account, if it was approved for an
earlier account, if its account was confirmed too recently, or if it must be compared with the bank
after a restore. The file has whole account numbers: keep it where the bank run is kept. It is
printed once a gateway has recorded the export, so that a restored database cannot export the
payouts again. If the output was lost, or the gateway did not answer, --export ID prints that export
again, in either format, and changes nothing; \`payouts show\` shows the ID. --json prints the
payouts.

  tranche payouts export --format pain.001 > bank-run.xml`,
  options: { export: { type: 'string' }, format: { type: 'string' } },
  async run(context) {
    const earlier = context.values.export;
    const format = oneOf(context.values.format ?? 'csv', bankFormats, 'format');
    const { made, rows } = await withBankRun(context, async (deps) => {
      const made = await (earlier === undefined
        ? exportPayouts(deps, deps.operator, format)
        : readExport(deps, deps.operator, earlier, format));
      return { made, rows: context.json ? await readAll(deps, made.payouts, true) : [] };
    });
    const { export_id, payouts, is_full, file, ...left } = made;
    if (context.json) {
      const named = Object.entries(left).map(([reason, some]) => [
        reason,
        some.map(({ id, merchant_id, reference }) => ({ id, merchant_id, reference })),
      ]);
      const data = rows.map(present);
      try {
        context.print({ export_id, data, ...Object.fromEntries(named), is_full }, () => '');
      } catch (error) {
        nameExport(context, made);
        throw error;
      }
      return;
    }
    nameExport(context, made);
    context.terminal.stdout.write(file);
    const notExported = explainLeftOut(left);
    for (const line of notExported) context.terminal.warn(line);
    if (is_full) context.terminal.warn('The file is full. Export again for the next payouts.');
    else if (payouts.length + notExported.length === 0) {
      context.terminal.warn('No payout is approved.');
    }
  },
});

/** Names the export, because its file may not be written, or may get lost. */
function nameExport({ terminal }: Pick<Context, 'terminal'>, { export_id, payouts }: Export): void {
  if (export_id === null) return;
  terminal.warn(
    `Payouts in export ${export_id}: ${payouts.length}. If the output is lost, \`tranche payouts export --export ${export_id}\` prints it again.`,
  );
}

/** A line for each payout that was not exported. */
function explainLeftOut(left: LeftOut): string[] {
  return [
    ...left.without_account.map(
      ({ reference, merchant_id }) =>
        `${reference} was not exported: its merchant has no confirmed bank account. Set one with \`tranche merchants bank ${merchant_id}\`.`,
    ),
    ...left.to_approve_again.map(
      ({ reference, id }) =>
        `${reference} was not exported: its merchant's bank account has changed since it was approved. Two operators must approve it again: \`tranche payouts approve ${id}\`.`,
    ),
    ...left.to_compare.map(
      ({ reference, id }) =>
        `${reference} was not exported: after the restore it must be compared with the bank. \`tranche payouts confirm ${id}\` records that the bank has not paid it.`,
    ),
    ...left.new_account.map(
      ({ reference, payable_from }) =>
        `${reference} was not exported: its bank account was confirmed too recently. It can be paid from ${showTime(payable_from)}.`,
    ),
  ];
}

const formats = ['csv', 'json', 'html', 'pdf'] as const;

const statement = command({
  name: 'payouts statement',
  usage: ['ID [--format csv|json|html|pdf]'],
  help: `Prints the statement of a payout for the merchant: every line with gross, fee, VAT and net,
to two decimals in CSV and in cents in JSON. Column names do not change. html is a page to print,
with the tax invoice lines, for at most 2,000 lines; pdf is the same as a document, for at most
20,000. ID may be the payout's reference.

  tranche payouts statement TR20261116-12 \\
    --format pdf > statement.pdf`,
  positionals: ['ID'],
  options: { format: { type: 'string' } },
  async run(context) {
    const [id = ''] = context.positionals;
    const { stdout } = context.terminal;
    const format = context.json ? 'json' : oneOf(context.values.format ?? 'csv', formats, 'format');
    await withMigrated(context, async (connection) => {
      const { db } = connection.database;
      const payout = await mustFindPayout(db, await idOf(connection, 'payout', id));
      if (format === 'json') {
        const found = await read(connection, payout, true);
        const answer = { ...present(found), totals: found.totals };
        context.print(answer, () => JSON.stringify(answer, null, 2));
        return;
      }
      const problem = whyNotPrinted(payout, format);
      if (problem !== null) throw new OperatorError(problem);
      if (format === 'pdf' && stdout.isTTY) {
        throw new UsageError('Send a PDF to a file: > statement.pdf');
      }
      for await (const piece of await writeStatement(connection, payout, format)) {
        stdout.write(piece);
      }
    });
  },
});

export const commands: Command[] = [
  list,
  show,
  approve,
  confirm,
  exportCommand,
  paid,
  returned,
  statement,
];
