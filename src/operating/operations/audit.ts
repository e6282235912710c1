import { isWithin } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { isKeyAction } from '#record/actions/operate.ts';
import { listOperatorActions, type OperatorAction } from '#record/actions/operator-action.sql.ts';
import { namesFor } from './actors.ts';
import { Action, AuditQuery } from './audit.schema.ts';
import { type ActionFilter, listActionsPage } from './audit.sql.ts';
import { defineList, type List, type PageRequest, readList } from './list.ts';
import { scopeOf, type Viewer } from './viewer.ts';

/** Who changed what, the newest first. */
export const auditList = defineList({
  name: 'audit',
  namesPeople: true,
  permission: 'audit.read',
  query: AuditQuery,
  row: Action,
  read: (viewer, { subject, person, operator, ...of }, page) =>
    readActions(
      viewer,
      { subject_id: subject, person_id: person, operator },
      page,
      scopeOf(viewer, of),
    ),
  columns: [
    ['Number', (row) => row.number],
    ['At', (row) => row.at],
    ['Operator', (row) => row.operator],
    ['Person', (row) => row.person_id],
    ['Name', (row) => (row.person_id === null ? null : row.name)],
    ['Roles', (row) => row.roles?.join(' ') ?? null],
    ['Address', (row) => row.address],
    ['Session', (row) => row.session_id],
    ['System user', (row) => row.os_user],
    ['Host', (row) => row.host],
    ['Action', (row) => row.action],
    ['Subject', (row) => row.subject_id],
    ['Details', (row) => JSON.stringify(row.details)],
  ],
});

export async function readActions(
  viewer: Viewer,
  filter: ActionFilter,
  page: PageRequest,
  scope = viewer.scope,
): Promise<List<Action>> {
  return await readList(
    viewer.deps,
    page,
    (db, range) => listActionsPage(db, scope, filter, range),
    (_, rows) => presentActions(viewer, rows),
  );
}

const actionsMax = 100;

/** The operators' actions on one object, the oldest first. */
export async function listActionsOn(db: Handle, id: string): Promise<OperatorAction[]> {
  return (await listOperatorActions(db, { subject_ids: [id] }, actionsMax)).reverse();
}

/**
 * Actions with the names of the people who took them. Only viewers who may read the audit see where
 * an action came from. A merchant's people see the service's staff only by role, and do not see
 * actions that only the staff may know of.
 */
export async function presentActions(
  { deps, may, scope }: Viewer,
  actions: (OperatorAction & { number?: number | null })[],
): Promise<Action[]> {
  const ids = actions.map(({ person_id }) => person_id);
  const show = await reading(deps, (db) => namesFor({ scope }, db, ids));
  const seen = actions.filter(
    ({ action, merchant_id }) =>
      scope === 'all merchants' ||
      // A note by one of a merchant's own people has a merchant, even if that person is staff
      // today.
      (!staffActions.includes(action) && (action !== 'checkouts note' || merchant_id !== null)),
  );
  return seen.map((action) => {
    // The action's merchant decides, not the person: someone who acted as staff, or for another
    // merchant, may belong to a merchant of the scope now.
    const isTraced = may('audit.read') && isWithin(scope, action.merchant_id ?? '');
    const shown = show(action.person_id, action.operator);
    return {
      ...action,
      number: action.number ?? null,
      name: shown.name,
      person_id: shown.person_id,
      ...(isTraced ? {} : untraced),
      ...(scope === 'all merchants' ? {} : forMerchant(action, shown)),
      ...(isKeyAction(action) && { name: action.operator }),
    };
  });
}

/** These actions would show a merchant how far the staff's approval of a payout has progressed. */
const staffActions = ['payouts approve', 'payouts confirm'];

const untraced = { address: null, session_id: null, os_user: null, host: null };

/** A merchant must not see an action's place in the chain, which would show how much others do. */
function forMerchant(action: OperatorAction, { person_id }: { person_id: string | null }) {
  const { roles, details } = action;
  const { invited_by: _, ...rest } = details as { invited_by?: string };
  const own = { number: null, details: rest };
  if (person_id !== null || isKeyAction(action)) return own;
  const name = roles?.[0] ?? 'operator';
  return { ...own, ...untraced, operator: name, name, person_id: null, roles: null };
}
