import type { Share } from '#record/actions/operate.ts';
import { ConsoleError } from './errors.ts';
import type { Context } from './route.ts';

// If one of a merchant's own people takes an action that concerns several of their merchants, each
// of these gets a row, a share, in its audit (decision 0076). A share has no counts, because these
// would tell one merchant about the others.

/** One action names at most this many of a person's merchants. */
const sharesMax = 50;

/** The shares of a read. A read without a merchant concerns all of the person's merchants. */
export function sharesOf(
  context: Context,
  merchant_id: string | null,
  details: object,
  /** The merchants of the rows shown, if these are known. */
  shown?: (string | null)[],
): Share[] {
  if (merchant_id !== null) return [];
  return ownOf(context, shown).map((id) => ({ merchant_id: id, details }));
}

/** The merchants of the rows shown, or all of the person's merchants. Empty for staff. */
export function ownOf({ scope }: Context, shown?: (string | null)[]): string[] {
  if (scope === 'all merchants') return [];
  const about = scope.merchant_ids.filter((id) => shown?.includes(id) ?? true);
  refuseMany(about);
  return about;
}

/** The shares of an action on rows: each merchant's share names only its own rows. */
export function sharesOfRows(
  { scope }: Context,
  rows: { id: string; merchant_id: string }[],
  details: object,
): Share[] {
  const groups = Map.groupBy(rows, ({ merchant_id }) => merchant_id);
  if (scope !== 'all merchants') refuseMany([...groups.keys()]);
  return [...groups].map(([merchant_id, own]) => {
    const ids = own.map(({ id }) => id);
    return { merchant_id, details: { ids, ...details, total: ids.length } };
  });
}

function refuseMany(merchant_ids: string[]): void {
  if (merchant_ids.length <= sharesMax) return;
  const text = `You work for more than ${sharesMax} shops. Choose one of them first.`;
  throw new ConsoleError(409, 'choose_merchant', text);
}
