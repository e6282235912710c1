import { type OperatorDeps, OperatorError, operate } from '../operators/operate.ts';
import { isUuid } from '../shared/uuid.ts';
import { findMerchant, movePage } from './merchant.sql.ts';
import { explainBadShortName, type Merchant } from './merchant.ts';

/** Sets what shoppers read about a merchant. What is absent stays as it is. */
export async function changePage(
  deps: OperatorDeps,
  operator: string,
  { id, ...wanted }: { id: string; short_name?: string | null; no_fees?: boolean },
): Promise<Merchant> {
  const problem = explainBadShortName(wanted.short_name ?? null);
  if (problem !== null) throw new OperatorError(problem);
  return await operate(deps, operator, 'merchants page', async (db) => {
    if (!isUuid(id) || !(await movePage(db, id, wanted))) {
      throw new OperatorError(`There is no merchant ${id}.`);
    }
    const result = (await findMerchant(db, id)) as Merchant;
    return { subject_id: result.id, details: wanted, result };
  });
}
