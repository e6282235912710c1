import { findMerchant } from '#merchants/merchant.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { findRecordEnd } from '#record/alerts/publish-end.ts';
import { type MonthlyDeps, writeStatement } from './make-monthly-statements.ts';
import {
  findCorrection,
  findMonthlyStatement,
  lockStatementMonth,
  moveStatementMonth,
} from './monthly-statement.sql.ts';
import { correctionsOf, partiesOf, statementReference } from './monthly-statement.ts';

export type CorrectionDeps = OperatorDeps & Pick<MonthlyDeps, 'issuer' | 'sendsMessages'>;

/**
 * Issues a statement again under the next number, because it names the merchant or the service
 * wrongly. The new statement has the same lines and amounts and refers to the old one, which stays
 * as it is. Returns the id of the new one.
 */
export async function correctStatement(
  deps: CorrectionDeps,
  operator: string,
  key: { merchant_id: string; id: string },
): Promise<string> {
  const { merchant_id } = key;
  const id = deps.random.uuid();
  return await operate(deps, operator, 'statements correct', async (db) => {
    // Statements and corrections take their numbers under this lock.
    const next = await lockStatementMonth(db, merchant_id);
    const merchant = await findMerchant(db, deps.clock, merchant_id);
    const old = await findMonthlyStatement(db, merchant_id, key.id);
    if (!next || !merchant || !old) throw new OperatorError(`There is no statement ${key.id}.`);
    const newer = await findCorrection(db, merchant_id, old.number);
    if (newer) {
      throw new OperatorError(
        `${old.reference} is replaced by ${newer.reference}. Correct the newer one.`,
      );
    }
    const now = partiesOf(merchant, deps.issuer);
    const corrections = correctionsOf(old, now);
    if (corrections.length === 0) {
      throw new OperatorError(
        `${old.reference} has nothing to correct: it names the merchant and the service as they are today. An amount is corrected by an entry in the books, which is a line of the next statement.`,
      );
    }
    const { month, number, lines } = next;
    if (lines > 0) {
      throw new OperatorError(
        `The statement of ${month.slice(0, 7)} is being made under the next number. Try again once it is made.`,
      );
    }
    const created_at = timestamp(merchant.now());
    await writeStatement(deps, db, {
      ...old,
      ...Object.fromEntries(corrections.map(({ name, to }) => [name, to])),
      id,
      number,
      reference: statementReference(merchant_id, number),
      created_at,
      corrects: old.number,
      record_end: await findRecordEnd(db, created_at),
    });
    await moveStatementMonth(db, merchant_id, { number: number + 1 });
    const corrected = corrections.map(({ name }) => name);
    const details = { number, corrects: old.number, corrected };
    return { subject_id: id, merchant_id, details, result: id };
  });
}
