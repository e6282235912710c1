import type { Logger } from '#platform/shared/logger.ts';
import { type OperatorDeps, operate, personOf, showOperator } from '#record/actions/operate.ts';
import { insertNotice } from './alert.sql.ts';

/**
 * Makes an operator's change that takes access away. A restored database does not know the changes
 * that were made after its backup. So each change is also logged and posted to the operators' own
 * URL, where it survives. The post is an alert that is already closed, because there is nothing to
 * do (decision 0097).
 */
export async function operateOnAccess<T>(
  deps: OperatorDeps & { log?: Logger },
  operator: string,
  action: string,
  change: Parameters<typeof operate<T>>[3],
): Promise<T> {
  return await operate<T>(deps, operator, action, async (db, at) => {
    const done = await change(db, at);
    const { subject_id, details } = done;
    const detail = `${showOperator(deps, operator)} ran \`${action}\`: ${JSON.stringify(details)}`;
    const by = { caused_by: operator, caused_person_id: personOf(deps) };
    const notice = { id: deps.random.uuid(), at, kind: 'access_ended', subject_id, detail, ...by };
    await insertNotice(db, notice);
    deps.log?.warn({ alert: notice }, 'alert');
    return done;
  });
}
