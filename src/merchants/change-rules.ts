import type { Handle } from '#platform/database/database.ts';
import { showMoney } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { OperatorError, operate, personOf } from '#record/actions/operate.ts';
import { refuseStale } from '#record/actions/refuse-stale.ts';
import { type LiftDeps, liftReview, NotPermitted } from '#record/alerts/lift-review.ts';
import {
  findMerchantRow,
  lockMerchant,
  movePreselectedTerm,
  moveRules,
  moveThreshold,
} from './merchant.sql.ts';
import {
  explainBadPreselection,
  explainBadRules,
  explainBadThreshold,
  explainSmallPayments,
  type FourEyesDefault,
  isLooser,
  isWider,
  type MerchantRow,
  type OwnThreshold,
  ownThreshold,
  type Rule,
  thresholdOf,
} from './merchant.ts';

/**
 * Sets the bands and terms for new checkouts; existing ones keep theirs (decision 0011). Sets the
 * term that the hosted page selects at first, on open checkouts too, and the amount above which a
 * refund needs two people. Absent members keep their values. `was` holds the values that the
 * operator read; the change is refused if they have changed since. If fewer refunds need two people
 * than before, the change needs a person with `mayLiftReview`. The service bears the risk of an
 * order, so only a person with `mayWidenBands` may make bands accept more than before.
 */
export async function changeRules(
  deps: LiftDeps & FourEyesDefault,
  operator: string,
  wanted: {
    id: string;
    rules?: unknown;
    preselected_term?: number | null;
    four_eyes_above?: OwnThreshold;
    was?: Partial<Pick<MerchantRow, 'rules' | 'preselected_term' | 'four_eyes_above'>>;
    mayLiftReview?: boolean;
    mayWidenBands?: boolean;
  },
): Promise<MerchantRow> {
  const { id, preselected_term, four_eyes_above } = wanted;
  const rules = wanted.rules as Rule[] | undefined;
  const problem =
    (rules === undefined ? null : explainBadRules(rules)) ??
    explainBadPreselection(preselected_term ?? null) ??
    explainBadThreshold(four_eyes_above ?? null);
  if (problem !== null) throw new OperatorError(problem);
  return await operate(deps, operator, 'merchants rules', async (db) => {
    const isFound = isUuid(id) && (await lockMerchant(db, id)) !== null;
    const before = isFound ? await findMerchantRow(db, id) : null;
    if (!before) throw noMerchant(id);
    await refuseStale(db, before, wanted.was, deps);
    if (rules !== undefined) {
      const mayWiden = personOf(deps) === null || wanted.mayWidenBands === true;
      if (!mayWiden && isWider(rules, before.rules)) throw new NotPermitted(bandsRefused);
      await moveRules(db, id, rules);
    }
    if (preselected_term !== undefined) await movePreselectedTerm(db, id, preselected_term);
    if (four_eyes_above !== undefined) {
      await changeThreshold(db, before, ownThreshold(deps, four_eyes_above));
    }
    const result = (await findMerchantRow(db, id)) as MerchantRow;
    const tooSmall = rules === undefined ? null : explainSmallPayments(rules, result.territory);
    if (tooSmall !== null) throw new OperatorError(tooSmall);
    const changed = (merchant: MerchantRow) => ({
      ...(rules !== undefined && { rules: merchant.rules }),
      ...(preselected_term !== undefined && { preselected_term: merchant.preselected_term }),
      ...(four_eyes_above !== undefined && { four_eyes_above: merchant.four_eyes_above }),
    });
    const details = { ...changed(result), before: changed(before) };
    return { subject_id: result.id, merchant_id: result.id, details, result };
  });

  async function changeThreshold(
    db: Handle,
    merchant: MerchantRow,
    own: OwnThreshold,
  ): Promise<void> {
    await moveThreshold(db, id, own);
    const earlier = thresholdOf(deps, merchant);
    const to = thresholdOf(deps, { four_eyes_above: own });
    if (!isLooser(to, earlier)) return;
    const money = (cents: number | null) => showMoney(cents as number, merchant.territory);
    await liftReview(deps, db, operator, {
      mayLiftReview: wanted.mayLiftReview,
      merchant_id: id,
      did: `${to === null ? 'removed' : 'raised'} the amount above which refunds of this merchant need two people: it was ${money(earlier)}${to === null ? '' : ` and is now ${money(to)}`}.`,
    });
  }
}

const bandsRefused =
  'Only an administrator of the payment service may add amounts or terms to the bands. You can only narrow them.';

const noMerchant = (id: string) => new OperatorError(`There is no merchant ${id}.`);
