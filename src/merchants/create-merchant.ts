import { showMoney } from '#platform/shared/money.ts';
import { isPlainLine } from '#platform/shared/plain-text.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { type LiftDeps, liftReview } from '#record/alerts/lift-review.ts';
import { findMerchant, findTerritory, insertMerchant } from './merchant.sql.ts';
import {
  explainBadPreselection,
  explainBadRules,
  explainBadThreshold,
  explainSmallPayments,
  type FourEyesDefault,
  isLooser,
  type Merchant,
  type OwnThreshold,
  ownThreshold,
  type Rule,
  thresholdOf,
} from './merchant.ts';

/**
 * Adds a merchant. Only a person with `mayLiftReview` may set a threshold for two people that is
 * looser than the default.
 */
export async function createMerchant(
  deps: LiftDeps & FourEyesDefault,
  operator: string,
  merchant: {
    name: string;
    territory: string;
    rules: unknown;
    preselected_term?: number | null;
    four_eyes_above?: OwnThreshold;
    mayLiftReview?: boolean;
  },
): Promise<Merchant> {
  const name = merchant.name.trim();
  if (name.length < 1 || name.length > 255 || !name.isWellFormed() || !isPlainLine(name)) {
    throw new OperatorError(
      'The name must have 1 to 255 characters on one line, without control characters or characters that change the direction of text.',
    );
  }
  const preselected_term = merchant.preselected_term ?? null;
  const four_eyes_above = ownThreshold(deps, merchant.four_eyes_above ?? null);
  const problem =
    explainBadRules(merchant.rules) ??
    explainBadPreselection(preselected_term) ??
    explainBadThreshold(four_eyes_above);
  if (problem !== null) throw new OperatorError(problem);
  const rules = merchant.rules as Rule[];
  const id = deps.random.uuid();
  return await operate(deps, operator, 'merchants create', async (db, now) => {
    const { territory } = merchant;
    const found = await findTerritory(db, territory);
    if (!found) throw new OperatorError(`There is no territory ${territory}.`);
    const tooSmall = explainSmallPayments(rules, found);
    if (tooSmall !== null) throw new OperatorError(tooSmall);
    const terms = { rules, preselected_term, four_eyes_above };
    await insertMerchant(db, { id, name, territory, created_at: now, ...terms });
    const above = thresholdOf(deps, terms);
    if (isLooser(above, deps.fourEyesAbove)) {
      const money = (cents: number | null) => showMoney(cents as number, found);
      await liftReview(deps, db, operator, {
        mayLiftReview: merchant.mayLiftReview,
        merchant_id: id,
        did: `added this merchant, whose refunds ${above === null ? 'never need two people' : `need two people only above ${money(above)}`}; the default is ${money(deps.fourEyesAbove)}.`,
      });
    }
    const result = (await findMerchant(db, deps.clock, id)) as Merchant;
    const details = {
      name,
      territory,
      rules,
      ...(preselected_term && { preselected_term }),
      ...(four_eyes_above !== null && { four_eyes_above }),
    };
    return { subject_id: id, details, result };
  });
}
