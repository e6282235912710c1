import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import { noMerchant } from '#operating/operations/merchants.ts';
import { presentTerms, termsActions } from '#operating/operations/terms.ts';
import { reading } from '#platform/database/transaction.ts';
import { showMoney } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { listTerms } from '#record/ledger/settlement.sql.ts';
import { fundings, refundFees } from '#record/ledger/settlement.ts';
import { runAction } from './action-command.ts';
import { command, oneOf, required, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { readInteger } from './duration.ts';
import { fill, type Terminal, table } from './terminal.ts';

export const fee = command({
  name: 'merchants fee',
  usage: [
    'ID',
    'ID --basis-points N --fixed N --vat-basis-points N [--from DATE] [--funding whole|as_collected] [--refund-fee kept|returned] [--reserve-basis-points N --reserve-days N]',
  ],
  help: `Sets the fee of each order: basis points of its amount, a fixed part in cents, and the VAT on
the fee in basis points. 1500 basis points are 15 %. With its first terms a merchant begins to be
paid out. --from is a local date, today by default. Entries that are in the books keep their fees.
Without options it lists the terms.

--funding whole (the default) owes the merchant the whole order once its first payment is
collected; as_collected owes each payment when it is collected. --refund-fee says whether a refund
returns the fee; kept is the default. --reserve-basis-points of each day's sales are held back for
--reserve-days.

  tranche merchants fee 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c \\
    --basis-points 535 --fixed 480 --vat-basis-points 1500`,
  positionals: ['ID'],
  options: {
    'basis-points': { type: 'string' },
    fixed: { type: 'string' },
    'vat-basis-points': { type: 'string' },
    from: { type: 'string' },
    funding: { type: 'string' },
    'refund-fee': { type: 'string' },
    'reserve-basis-points': { type: 'string' },
    'reserve-days': { type: 'string' },
  },
  async run({ positionals: [id = ''], values, terminal, print, ...context }) {
    const { json: _, help: __, ...given } = values as Record<string, unknown>;
    if (Object.keys(given).length === 0) {
      const { merchant, terms } = await withMigrated(context, (connection) =>
        reading(connection, async (db) => {
          const merchant = isUuid(id) ? await findMerchantRow(db, id) : null;
          if (!merchant) throw noMerchant(id);
          return { merchant, terms: (await listTerms(db, merchant.id)).map(presentTerms) };
        }),
      );
      print({ data: terms }, () => describe(terminal, merchant, terms));
      return;
    }
    const count = (name: 'basis-points' | 'fixed' | 'vat-basis-points') =>
      readInteger(required(values[name], name), name);
    const optional = (name: 'reserve-basis-points' | 'reserve-days') =>
      readInteger(values[name] ?? '0', name);
    const from = readDate(values.from, 'from');
    const body = {
      basis_points: count('basis-points'),
      fixed: count('fixed'),
      vat_basis_points: count('vat-basis-points'),
      ...(from !== null && { from }),
      funding: oneOf(values.funding ?? 'whole', fundings, 'funding'),
      refund_fee: oneOf(values['refund-fee'] ?? 'kept', refundFees, 'refund-fee'),
      reserve_basis_points: optional('reserve-basis-points'),
      reserve_days: optional('reserve-days'),
    };
    const { merchant, terms } = await withMigrated(context, async (connection) => {
      const terms = await runAction(connection, termsActions.set, { params: { id }, body });
      const merchant = (await findMerchantRow(connection.database.db, id)) as MerchantRow;
      return { merchant, terms };
    });
    print(terms, () => describe(terminal, merchant, [terms]));
    return;
  },
});

const percent = (points: number) => `${points / 100} %`;

function describe(
  terminal: Terminal,
  merchant: MerchantRow,
  list: ReturnType<typeof presentTerms>[],
): string {
  if (list.length === 0) {
    return fill('The merchant has no terms: it is not paid out by this service.');
  }
  return table(
    terminal,
    ['From', 'Fee', 'VAT', 'Funding'],
    list.map((terms) => ({
      cells: [
        terms.from,
        `${percent(terms.basis_points)} + ${showMoney(terms.fixed, merchant.territory)}`,
        percent(terms.vat_basis_points),
        terms.funding,
      ],
      below: [
        `the fee of a refund is ${terms.refund_fee}`,
        terms.reserve_basis_points > 0
          ? `reserve ${percent(terms.reserve_basis_points)} for ${terms.reserve_days} days`
          : null,
      ],
    })),
  );
}

/** A local date, or null if the option is not given. */
export function readDate(text: string | undefined, option: string): string | null {
  if (text === undefined) return null;
  try {
    return Temporal.PlainDate.from(text, { overflow: 'reject' }).toString();
  } catch {
    throw new UsageError(`--${option} is "${text}" and must be a date such as 2026-11-15.`);
  }
}
