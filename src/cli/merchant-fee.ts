import { type ListedMerchant, mustSeeMerchant } from '#operating/operations/merchants.ts';
import type { TermsRow } from '#operating/operations/terms.schema.ts';
import { readTerms, termsActions } from '#operating/operations/terms.ts';
import { showMoney } from '#platform/shared/money.ts';
import { plural } from '#platform/shared/plural.ts';
import { runAction } from './action-command.ts';
import { command, UsageError } from './command.ts';
import { viewerOf, withMigrated } from './connect.ts';
import { optionsOf, readOptions } from './schema-options.ts';
import { fill, type Terminal, table } from './terminal.ts';

const { body: Terms } = termsActions.set.schema;

export const fee = command({
  name: 'merchants fee',
  usage: [
    'ID',
    'ID --basis-points N --fixed N --vat-basis-points N [--from DATE] [--funding whole|as_collected] [--refund-fee kept|returned] [--reserve-basis-points N --reserve-days N]',
  ],
  help: `Sets the fee of each order: basis points of its amount, a fixed part in cents, and the VAT
on the fee in basis points. 1500 basis points are 15 %. Payouts to a merchant begin with its first
terms. --from is a local date, today by default. Entries that are already in the books keep their
fees. Without options the command lists the terms.

With --funding whole (the default) the merchant is owed the whole order once its first payment is
collected; with as_collected, each payment when it is collected. --refund-fee says whether a refund
returns the fee; kept is the default. --reserve-basis-points of each day's sales, less fees, refunds
and disputes, are held back for --reserve-days; 10000 holds back all of them.

  tranche merchants fee 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c \\
    --basis-points 535 --fixed 480 --vat-basis-points 1500`,
  positionals: ['ID'],
  options: optionsOf(Terms.properties, {}),
  async run(context) {
    const [id = ''] = context.positionals;
    const { values, terminal, print } = context;
    const { json: _, help: __, ...given } = values as Record<string, string | undefined>;
    const body = Object.keys(given).length === 0 ? null : readTermsOptions(given);
    const { merchant, set, terms } = await withMigrated(context, async (deps) => {
      const viewer = viewerOf(deps);
      const set = body && (await runAction(deps, termsActions.set, { params: { id }, body }));
      const merchant = await mustSeeMerchant(viewer, id);
      return { merchant, set, terms: set ? [set] : await readTerms(viewer, merchant.id) };
    });
    print(set ?? { data: terms }, () => describe(terminal, merchant, terms));
  },
});

function readTermsOptions(given: Record<string, string | undefined>) {
  const terms = readOptions(Terms.properties, given, {});
  const from = readDate(given.from, 'from');
  return from === null ? terms : { ...terms, from };
}

const percent = (points: number) => `${points / 100} %`;

function describe(
  terminal: Terminal,
  merchant: ListedMerchant,
  list: Omit<TermsRow, 'created_at'>[],
): string {
  if (list.length === 0) {
    return fill('The merchant has no terms, so this service makes no payouts to it.');
  }
  return table(
    terminal,
    ['From', 'Fee', 'VAT', 'Funding'],
    list.map((terms) => ({
      cells: [
        terms.from,
        `${percent(terms.basis_points)} + ${showMoney(terms.fixed, merchant)}`,
        percent(terms.vat_basis_points),
        terms.funding,
      ],
      below: [
        `on a refund, the fee is ${terms.refund_fee}`,
        terms.reserve_basis_points > 0
          ? `reserve ${percent(terms.reserve_basis_points)} for ${plural(terms.reserve_days, 'day')}`
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
