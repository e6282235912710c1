import { isDeepStrictEqual } from 'node:util';
import type { Handle } from '#platform/database/database.ts';
import { merchantsOf, type OperatorDeps, OperatorError } from './operate.ts';
import { listOperatorActions, type OperatorAction } from './operator-action.sql.ts';
import { listActors } from './person-names.sql.ts';

type Members = Record<string, unknown>;

/** How many of the row's newest actions are searched for the one that made the change. */
const actionsMax = 20;

/**
 * Refuses a change to values that differ from what the operator read (decision 0076). `read` holds
 * those values by name, and may be absent. The caller has locked `row`.
 */
export async function refuseStale(
  db: Handle,
  row: { id: string } & object,
  read: object | undefined,
  deps: Pick<OperatorDeps, 'origin'>,
): Promise<void> {
  const stale = Object.entries(read ?? {})
    .filter(([name, value]) => !isDeepStrictEqual(value, (row as Members)[name]))
    .map(([name]) => name);
  if (stale.length === 0) return;
  const actions = await listOperatorActions(db, { subject_ids: [row.id] }, actionsMax);
  const action = actions.find(({ details }) =>
    stale.some((name) => hasChanged(details as Members, name)),
  );
  const by = action ? ` by ${await nameFor(db, merchantsOf(deps), action)}` : '';
  throw new OperatorError(`This was changed in the meantime${by}. Reload and try again.`);
}

/** A merchant's people see only the role of the service's staff, not a name. */
async function nameFor(
  db: Handle,
  merchant_ids: string[] | null,
  { person_id, operator, roles }: OperatorAction,
): Promise<string> {
  const actor = (await listActors(db, merchant_ids, [person_id])).get(person_id ?? '');
  if (merchant_ids !== null && (actor?.merchant_ids ?? null) === null)
    return `the payment service (${roles?.[0] ?? 'operator'})`;
  return actor?.name ?? operator;
}

/** An action's details hold the new values in `after`, or beside `before`. */
function hasChanged(details: Members, name: string): boolean {
  const after = (details.after ?? details) as Members;
  const before = (details.before ?? {}) as Members;
  return name in after && !isDeepStrictEqual(after[name], before[name]);
}
