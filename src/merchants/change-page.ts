import { createHash } from 'node:crypto';
import { rewritePng } from '#platform/shared/rewrite-png.ts';
import { logoBounds } from '#platform/shared/uploads.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { refuseStale } from '#record/actions/refuse-stale.ts';
import { findMerchantRow, lockMerchant, movePage } from './merchant.sql.ts';
import {
  explainBadProfile,
  explainBadShortName,
  type MerchantProfile,
  type MerchantRow,
} from './merchant.ts';

type PageMembers = Pick<MerchantRow, 'short_name' | 'no_fees' | 'language'> & MerchantProfile;

/** New values of the members that shoppers read. A logo is given as the bytes of a PNG. */
export type PageChange = Partial<Omit<PageMembers, 'logo'>> & { logo?: Buffer | null };

/**
 * Sets what shoppers read about a merchant. Absent members keep their values. `was` holds the
 * values that the operator read; the change is refused if they have changed since.
 */
export async function changePage(
  deps: OperatorDeps,
  operator: string,
  { id, was, ...wanted }: { id: string; was?: Partial<PageMembers> } & PageChange,
): Promise<MerchantRow> {
  const to = readPageChange(wanted);
  return await operate(deps, operator, 'merchants page', async (db) => {
    const isFound = isUuid(id) && (await lockMerchant(db, id)) !== null;
    const before = isFound ? await findMerchantRow(db, id) : null;
    if (!before) throw new OperatorError(`There is no merchant ${id}.`);
    await refuseStale(db, before, was, deps);
    await movePage(db, id, to);
    const result = (await findMerchantRow(db, id)) as MerchantRow;
    const names = Object.keys(wanted) as (keyof typeof wanted)[];
    const changed = (merchant: MerchantRow) =>
      Object.fromEntries(names.map((name) => [name, merchant[name]]));
    const details = { ...changed(result), before: changed(before) };
    return { subject_id: result.id, merchant_id: result.id, details, result };
  });
}

/** Checks the members, and rewrites a logo from its pixels. */
export function readPageChange({ logo, ...texts }: PageChange) {
  const problem = explainBadShortName(texts.short_name ?? null) ?? explainBadProfile(texts);
  if (problem !== null) throw new OperatorError(problem);
  if (logo === undefined) return texts;
  if (logo === null) return { ...texts, logo, logo_png: null };
  const read = rewritePng(logo, logoBounds);
  if ('problem' in read) throw new OperatorError(`The logo cannot be used. ${read.problem}`);
  const digest = createHash('sha256').update(read.content).digest('hex');
  return { ...texts, logo: digest, logo_png: read.content };
}
