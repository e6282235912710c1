import { listMerchantNames } from '#operating/operations/owner.sql.ts';
import { type Hit, search } from '#operating/search/search.ts';
import { reading } from '#platform/database/transaction.ts';
import { showMoney } from '#platform/shared/money.ts';
import { command, mustBeId } from './command.ts';
import { withMigrated } from './connect.ts';
import { readLimit } from './list-command.ts';
import { showShortTime, table } from './terminal.ts';

export const find = command({
  name: 'find',
  usage: ['TEXT [--merchant ID] [--limit N]'],
  help: `Finds checkouts by an order reference, an amount (1500, R 1 500,00), an e-mail address, a
name (Dlamini, Thandi Dlamini), the last four digits of a card or a gateway reference. It also finds
anything by its ID, and people who use the console. The beginning is enough for an order reference
(three characters), an ID (eight), and the name of a merchant or such a person. Everything else must
match as a whole; case matters only in references. A checkout that has not ended is found by its
shopper only while it is one of the newest 1,000, and never by its amount. Times are in UTC.

It prints at most --limit rows (50): first what matches as a whole, then what begins with the text,
the newest first. If more than --limit references begin with the text, it looks only at those of the
newest 200 checkouts and at those that come last in alphabetical order. --merchant or a more precise
text narrows the search.

  tranche find thandi@example.com`,
  positionals: ['TEXT'],
  options: { merchant: { type: 'string' }, limit: { type: 'string' } },
  async run(context) {
    const [text = ''] = context.positionals;
    const { merchant, limit } = context.values;
    const scope =
      merchant === undefined ? 'all merchants' : { merchant_ids: [mustBeId(merchant, 'merchant')] };
    const rowsMax = readLimit(limit);
    const { hits, merchants } = await withMigrated(context, async (connection) => {
      const hits = await search(connection, scope, text, rowsMax);
      const ids = hits.flatMap(({ merchant_id }) => merchant_id ?? []);
      const merchants = await reading(connection, (db) => listMerchantNames(db, scope, ids));
      return { hits, merchants };
    });
    context.print({ data: hits }, () =>
      hits.length === 0
        ? 'Nothing was found. `tranche find --help` says what you can search for.'
        : table(
            context.terminal,
            ['Kind', 'ID', 'Created', 'Status'],
            hits.map((hit) => {
              const { name, locale } = merchants.get(hit.merchant_id ?? '') ?? {};
              return {
                cells: [hit.kind, hit.id, showShortTime(hit.created_at), hit.status ?? ''],
                below: [name, hit.client_reference_id, shopperOf(hit), amountOf(hit, locale)],
              };
            }),
          ),
    );
  },
});

/**
 * The name and the e-mail address, or the only one of them that the hit has. Null if it has
 * neither.
 */
function shopperOf({ name, email }: Hit): string | null {
  return name === null || email === null ? (name ?? email) : `${name} <${email}>`;
}

function amountOf({ amount, currency }: Hit, locale = 'en'): string | null {
  return amount === null ? null : showMoney(amount, { currency: currency ?? '', locale });
}
