import { isUuid } from '#platform/shared/uuid.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { findMerchantRow, movePage } from './merchant.sql.ts';
import { explainBadShortName, type MerchantRow } from './merchant.ts';

/** Sets what shoppers read about a merchant. Members that are absent keep their values. */
export async function changePage(
  deps: OperatorDeps,
  operator: string,
  { id, ...wanted }: { id: string; short_name?: string | null; no_fees?: boolean },
): Promise<MerchantRow> {
  const problem = explainBadShortName(wanted.short_name ?? null);
  if (problem !== null) throw new OperatorError(problem);
  return await operate(deps, operator, 'merchants page', async (db) => {
    const before = isUuid(id) ? await findMerchantRow(db, id) : null;
    if (!before || !(await movePage(db, id, wanted))) {
      throw new OperatorError(`There is no merchant ${id}.`);
    }
    const result = (await findMerchantRow(db, id)) as MerchantRow;
    const changed = (merchant: MerchantRow) => ({
      ...(wanted.short_name !== undefined && { short_name: merchant.short_name }),
      ...(wanted.no_fees !== undefined && { no_fees: merchant.no_fees }),
    });
    const details = { ...changed(result), before: changed(before) };
    return { subject_id: result.id, details, result };
  });
}
