import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { findMerchantRow } from '#merchants/merchant.sql.ts';
import { legacyUsageList, usedSince } from '#operating/operations/legacy-usage.ts';
import { mustSeeMerchant, noMerchant } from '#operating/operations/merchants.ts';
import { reading } from '#platform/database/transaction.ts';
import { ApiError } from '#platform/http/errors.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import {
  type Preview,
  previewCheckout,
  readLegacyFile,
} from '#purchases/legacy/preview-checkout.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Command, type Context, command, required, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { listCommand } from './list-command.ts';
import { fields, type Terminal, table } from './terminal.ts';

const preview = command({
  name: 'legacy preview',
  usage: ['--file PATH|- [--merchant ID]'],
  help: `Prints the v2 request that means the same as a v1 request, the v2 fields that are missing,
and what v2 would refuse. The file holds the body of POST /payment/checkout as JSON or as a form; -
reads standard input.

Nothing is sent or stored. --merchant also checks the amount, currency and notify_url against that
merchant's rules; only this needs a database.

  tranche legacy preview --file request.json`,
  options: { file: { type: 'string' }, merchant: { type: 'string' } },
  async run(context) {
    const v1 = await readRequest(context, required(context.values.file, 'file'));
    const { merchant } = context.values;
    const previewed =
      merchant === undefined
        ? previewCheckout(v1, null, { ranges: [], hosts: null })
        : await withMigrated(context, async (connection) => {
            const found = isUuid(merchant)
              ? await reading(connection, (db) => findMerchantRow(db, merchant))
              : null;
            if (!found) throw noMerchant(merchant);
            return previewCheckout(v1, found, connection.config.callbackAllow);
          });
    context.print(previewed, () => describePreview(context.terminal, previewed));
  },
});

async function readRequest(context: Context, file: string) {
  let raw: Buffer;
  try {
    raw = file === '-' ? await buffer(context.stdin) : await readFile(file);
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${(error as Error).message}.`);
  }
  try {
    return readLegacyFile(raw);
  } catch (error) {
    if (error instanceof ApiError) throw new OperatorError(error.message);
    throw error;
  }
}

const reasons: Record<string, string> = {
  'checkout.cancel_url': 'new in v2; v1 returned to merchant.return_url',
  'checkout.customer.email': 'v1 calls it customer.emailAddress',
};

function describePreview(
  terminal: Terminal,
  { request, missing, problems, ignored }: Preview,
): string {
  const list = (lines: string[]) => (lines.length > 0 ? lines : 'nothing');
  return `${terminal.accent(`${request.method} ${request.path}`)}

${JSON.stringify(request.body, null, 2)}

${fields(terminal, [
  ['Missing', list(missing.map((name) => (reasons[name] ? `${name}: ${reasons[name]}` : name)))],
  ['Refused', list(problems)],
  ['Ignored', list(ignored)],
])}

Send it compact and signed, with your v2 client secret as the Bearer token.`;
}

const usage = listCommand(legacyUsageList, {
  name: 'legacy usage',
  help: `Lists the integrations that have or had v1 credentials, with their logins and checkouts in
the last 30 days, or --days (including today, in UTC), and the day of their last v1 request. If an
integration no longer uses v1, switch it off with \`tranche integrations v1 ID --disable\`.`,
  example: 'tranche legacy usage --days 90',
  async check(viewer, { merchant, days = 1 }) {
    if (days < 1 || days > 3660) throw new UsageError('--days must be from 1 to 3660.');
    if (merchant !== undefined) await mustSeeMerchant(viewer, merchant);
  },
  about(clock, query) {
    const since = usedSince(clock.now(), query);
    return { json: { since }, text: `Logins and checkouts since ${since}.` };
  },
  json: ['integration_id', 'merchant_id', 'enabled_at', 'logins', 'checkouts', 'last_used_on'],
  empty: 'No integration has or had v1 credentials.',
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Owner', 'v1', 'Logins', 'Requests', 'Last'],
      rows.map((one) => [
        one.integration_id,
        one.merchant_name ?? 'intermediary',
        one.enabled_at === null ? 'off' : 'on',
        String(one.logins),
        String(one.checkouts),
        one.last_used_on ?? 'never',
      ]),
      'Owner',
    ),
});

export const commands: Command[] = [preview, usage];
