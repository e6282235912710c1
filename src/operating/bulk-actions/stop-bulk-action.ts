import { type OperatorDeps, OperatorError, operate, personOf } from '#record/actions/operate.ts';
import { listMerchantsOfSubject } from '#record/actions/operator-action.sql.ts';
import { lockBulkAction, moveStopped } from './bulk-action.sql.ts';

/** An operator stops a bulk action. Items that are done stay done. */
export async function stopBulkAction(
  deps: OperatorDeps,
  operator: string,
  id: string,
): Promise<void> {
  await operate(deps, operator, 'bulk-actions stop', async (db, now) => {
    const action = await lockBulkAction(db, id);
    if (action === null || action.finished_at !== null) {
      throw new OperatorError('This bulk action has already ended.');
    }
    // The person who began the bulk action reads this text, so it does not contain a name from the
    // command line. The audit does.
    const by = personOf(deps) === null ? 'An operator at the server' : operator;
    const stopped = `${by} stopped this.`;
    await moveStopped(db, id, { finished_at: now, stopped });
    const { kind, done, failed, total } = action;
    const merchants = await listMerchantsOfSubject(db, id);
    const shares = merchants.map((merchant_id) => ({ merchant_id, details: { kind } }));
    return { subject_id: id, details: { kind, done, failed, total }, shares, result: undefined };
  });
}
