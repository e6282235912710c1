import { readFile } from 'node:fs/promises';
import { findMerchantRow, listMerchantRows } from '#merchants/merchant.sql.ts';
import { readList } from '#operating/operations/list.ts';
import { noMerchant } from '#operating/operations/merchants.ts';
import { BadKey, type Key } from '#operating/operations/range.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { ApiError } from '#platform/http/errors.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { type LegacyTraffic, listTraffic } from '#purchases/legacy/legacy-usage.sql.ts';
import { dayOf } from '#purchases/legacy/log-in.ts';
import {
  type Preview,
  previewCheckout,
  readLegacyFile,
} from '#purchases/legacy/preview-checkout.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type CommandGroup, type Context, command, required, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { readInteger } from './duration.ts';
import { nextPage, pagingHelp, readLimit, refusePage } from './list-command.ts';
import { fields, type Terminal, table } from './terminal.ts';

const preview = command({
  name: 'legacy preview',
  summary: 'translate a v1 request to v2',
  usage: ['--file PATH|- [--merchant ID]'],
  help: `Prints the v2 request with the meaning of a v1 request, which v2 fields are missing, and what
v2 would refuse. The file holds the body of POST /payment/checkout as JSON or as a form; - reads
standard input.

Nothing is sent or stored. --merchant also checks the amount, currency and notify_url against that
merchant's rules; only this needs a database.

  tranche legacy preview --file request.json`,
  options: { file: { type: 'string' }, merchant: { type: 'string' } },
  async run(context) {
    const v1 = await readRequest(context, required(context.values.file, 'file'));
    const { merchant } = context.values;
    const previewed =
      merchant === undefined
        ? previewCheckout(v1, null, [])
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
    raw = file === '-' ? await context.readInput() : await readFile(file);
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

const usage = command({
  name: 'legacy usage',
  summary: 'v1 traffic per integration',
  usage: ['[--merchant ID] [--integration ID] [--days 30] [--limit N] [--after CURSOR]'],
  help: `Lists the integrations that have or had v1 credentials, with their logins and checkouts in
the last days (including today, in UTC) and the day of their last v1 request. Switch v1 off for
an integration that no longer uses it with tranche integrations v1 ID --disable.

${pagingHelp}

  tranche legacy usage --days 90`,
  options: {
    merchant: { type: 'string' },
    limit: { type: 'string' },
    after: { type: 'string' },
    integration: { type: 'string' },
    days: { type: 'string', default: '30' },
  },
  async run(context) {
    const { merchant, integration, days: given } = context.values;
    const days = readInteger(given, 'days');
    if (days < 1 || days > 3660) throw new UsageError('--days must be from 1 to 3660.');
    const today = Temporal.PlainDate.from(dayOf(context.clock.now()));
    const since = today.subtract({ days: days - 1 }).toString();
    const page = { after: context.values.after ?? null, limit: readLimit(context.values.limit) };
    const { data, next } = await withMigrated(context, (connection) =>
      readList(
        connection,
        page,
        async (db, { after, limit }) => {
          if (
            merchant !== undefined &&
            !(isUuid(merchant) && (await findMerchantRow(db, merchant)))
          ) {
            throw noMerchant(merchant);
          }
          if (integration !== undefined && !isUuid(integration)) {
            throw new OperatorError(`There is no integration ${integration}.`);
          }
          const filter = {
            ...(merchant !== undefined && { merchant_id: merchant }),
            ...(integration !== undefined && { integration_id: integration }),
          };
          const rows = await listTraffic(db, since, filter, { after: readKey(after), limit });
          const last = rows.length < limit ? undefined : rows.at(-1);
          return { rows, last: last ? [last.created_at, last.integration_id] : null };
        },
        async (db, rows) => {
          const ids = rows.flatMap(({ merchant_id }) => merchant_id ?? []);
          const merchants = await listMerchantRows(db, [...new Set(ids)]);
          const names = new Map(merchants.map(({ id, name }) => [id, name]));
          return rows.map((row) => ({ ...row, name: names.get(row.merchant_id ?? '') }));
        },
      ),
    ).catch(refusePage);
    context.print({ since, data: data.map(present), next }, () =>
      data.length === 0
        ? 'No integration has or had v1 credentials.'
        : `${table(
            context.terminal,
            ['ID', 'Of', 'v1', 'Logins', 'Checkouts', 'Last'],
            data.map((one) => [
              one.integration_id,
              one.merchant_id === null ? 'intermediary' : (one.name ?? ''),
              one.enabled_at === null ? 'off' : 'on',
              String(one.logins),
              String(one.checkouts),
              one.last_used_on ?? 'never',
            ]),
            'Of',
          )}

Logins and checkouts since ${since}.${nextPage(context, 'legacy usage', next)}`,
    );
  },
});

const present = ({
  created_at: _,
  name: __,
  ...traffic
}: LegacyTraffic & { name: string | undefined }) => traffic;

/** The last integration of the page before: when it was created, and its id. */
function readKey(key: Key | null): { created_at: string; id: string } | null {
  if (key === null) return null;
  const [created_at = '', id = '', ...rest] = key;
  if (rest.length > 0 || !isUuid(id)) throw new BadKey();
  return { created_at, id };
}

export const legacy: CommandGroup = {
  name: 'legacy',
  summary: 'the v1 plugin API and its retirement',
  commands: [preview, usage],
};
