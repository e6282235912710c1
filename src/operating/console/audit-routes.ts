import type Type from 'typebox';
import { remedies } from '#checks/reconciliation/compare.ts';
import {
  Action,
  AlertRow,
  AlertsPage,
  AlertsQuery,
  AuditPage,
  AuditQuery,
  CloseAlert,
} from '#operating/operations/audit.schema.ts';
import type { Column } from '#operating/operations/csv.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  type ListedAction,
  type ListedAlert,
  listActionsWithin,
  listAlertsWithin,
  readAlertWithin,
} from '#operating/operations/registers.ts';
import { reading } from '#platform/database/transaction.ts';
import { listPersonNames } from '#record/actions/person-names.sql.ts';
import { closeAlert, takeAlert } from '#record/alerts/handle-alert.ts';
import { notFound } from './errors.ts';
import { listRoutes, scopeOf } from './pages.ts';
import { actRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Page = { after: string | null; limit: number };

const readAlerts =
  (kinds?: string[]) =>
  (context: Context, query: Type.Static<typeof AlertsQuery>) =>
  async (page: Page) => {
    const scope = scopeOf(context, query);
    const { state = null } = query;
    const { data, next } = await listAlertsWithin(context.deps, scope, state, page, kinds);
    return { data: await presentAlerts(context, data), next };
  };

/** A difference between the gateway's records and our rows is an alert of one of these kinds. */
const findingKinds = Object.keys(remedies).map((kind) => `gateway_${kind}`);

/** One alert as it is now. */
async function readAlert(context: Context, id: string): Promise<AlertRow> {
  const found = await readAlertWithin(context.deps, context.person.scope, id);
  const [alert] = await presentAlerts(context, found ? [found] : []);
  if (!alert) throw notFound();
  return alert;
}

async function readFinding(context: Context, id: string): Promise<AlertRow> {
  const alert = await readAlert(context, id);
  if (!findingKinds.includes(alert.kind)) throw notFound();
  return alert;
}

const readAudit =
  (context: Context, query: Type.Static<typeof AuditQuery>) => async (page: Page) => {
    const filter = { subject_id: query.subject ?? null, person_id: query.person ?? null };
    const { scope } = context.person;
    const { data, next } = await listActionsWithin(context.deps, scope, filter, page);
    return { data: await presentActions(context, data), next };
  };

const alertColumns: Column<AlertRow>[] = [
  ['At', (row) => row.at],
  ['Kind', (row) => row.kind],
  ['State', (row) => row.state],
  ['Merchant', (row) => row.merchant_name],
  ['Detail', (row) => row.detail],
  ['Taken by', (row) => row.taken_by_name],
  ['Closed by', (row) => row.closed_by_name],
  ['Reason', (row) => row.close_reason],
  ['ID', (row) => row.id],
];

const auditColumns: Column<Action>[] = [
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
];

export const auditRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'alerts',
    permission: 'alerts.read',
    query: AlertsQuery,
    page: AlertsPage,
    columns: alertColumns,
    read: readAlerts(),
  }),
  actRoute({
    method: 'POST',
    url: '/api/alerts/:id/take',
    permission: 'alerts.handle',
    schema: { params: IdParams, response: AlertRow },
    async act(context, { params }) {
      await takeAlert(context.deps, context.operator, params.id);
      return () => readAlert(context, params.id);
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/alerts/:id/close',
    permission: 'alerts.handle',
    schema: { params: IdParams, body: CloseAlert, response: AlertRow },
    async act(context, { params, body }) {
      await closeAlert(context.deps, context.operator, params.id, body.reason);
      return () => readAlert(context, params.id);
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/alerts/:id',
    permission: 'alerts.read',
    schema: { params: IdParams, response: AlertRow },
    handle: (context, { params }) => readAlert(context, params.id),
  }),
  ...listRoutes({
    name: 'findings',
    permission: 'findings.read',
    query: AlertsQuery,
    page: AlertsPage,
    columns: alertColumns,
    read: readAlerts(findingKinds),
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/findings/:id',
    permission: 'findings.read',
    schema: { params: IdParams, response: AlertRow },
    handle: (context, { params }) => readFinding(context, params.id),
  }),
  actRoute({
    method: 'POST',
    url: '/api/findings/:id/close',
    permission: 'findings.close',
    schema: { params: IdParams, body: CloseAlert, response: AlertRow },
    async act(context, { params, body }) {
      const { id } = await readFinding(context, params.id);
      await closeAlert(context.deps, context.operator, id, body.reason);
      return () => readFinding(context, id);
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/audit/:id',
    permission: 'audit.read',
    schema: { params: IdParams, response: Action },
    async handle(context, { params }) {
      const filter = { id: params.id, subject_id: null, person_id: null };
      const page = { after: null, limit: 1 };
      const { data } = await listActionsWithin(context.deps, context.person.scope, filter, page);
      const [action] = await presentActions(context, data);
      if (!action) throw notFound();
      return action;
    },
  }),
  ...listRoutes({
    name: 'audit',
    permission: 'audit.read',
    query: AuditQuery,
    page: AuditPage,
    columns: auditColumns,
    read: readAudit,
  }),
];

/** Alerts with the names of the people who took and closed them. A claim stays as it was given. */
async function presentAlerts({ deps }: Context, alerts: ListedAlert[]): Promise<AlertRow[]> {
  const ids = alerts.flatMap((alert) => [alert.taken_person_id, alert.closed_person_id]);
  const names = await reading(deps, (db) => listPersonNames(db, ids));
  const nameOf = (person_id: string | null, operator: string | null) =>
    names.get(person_id ?? '') ?? operator;
  return alerts.map((alert) => ({
    id: alert.id,
    at: alert.at,
    kind: alert.kind,
    state: alert.closed_at !== null ? 'closed' : alert.taken_at !== null ? 'taken' : 'open',
    integration_id: alert.integration_id,
    merchant_id: alert.merchant_id,
    merchant_name: alert.merchant_name,
    subject_id: alert.subject_id,
    detail: alert.detail,
    taken_at: alert.taken_at,
    taken_by: alert.taken_by,
    taken_by_name: nameOf(alert.taken_person_id, alert.taken_by),
    closed_at: alert.closed_at,
    closed_by: alert.closed_by,
    closed_by_name: nameOf(alert.closed_person_id, alert.closed_by),
    close_reason: alert.close_reason,
  }));
}

/** Acts with the names of their people. Where they came from is for people who may read the audit. */
export async function presentActions(
  { deps, person }: Context,
  actions: ListedAction[],
): Promise<Action[]> {
  const ids = actions.map(({ person_id }) => person_id);
  const names = await reading(deps, (db) => listPersonNames(db, ids));
  const mayTrace = person.permissions.includes('audit.read');
  return actions.map((action) => ({
    id: action.id,
    number: action.number ?? null,
    at: action.at,
    operator: action.operator,
    name: names.get(action.person_id ?? '') ?? action.operator,
    person_id: action.person_id,
    roles: action.roles,
    address: mayTrace ? action.address : null,
    session_id: mayTrace ? action.session_id : null,
    os_user: mayTrace ? action.os_user : null,
    host: mayTrace ? action.host : null,
    action: action.action,
    subject_id: action.subject_id,
    details: action.details,
  }));
}
