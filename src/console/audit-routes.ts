import Type from 'typebox';
import { closeAlert, takeAlert } from '../operators/handle-alert.ts';
import {
  type ListedAction,
  type ListedAlert,
  listActionsWithin,
  listAlertsWithin,
} from '../search/registers.ts';
import {
  type Action,
  AlertRow,
  AlertsPage,
  AlertsQuery,
  AuditPage,
  AuditQuery,
  CloseAlert,
} from './audit.schema.ts';
import type { Column } from './csv.ts';
import { IdParams } from './list.schema.ts';
import { answerCsv, answerPage, scopeOf } from './pages.ts';
import { type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Page = { after: string | null; limit: number };

const readAlerts =
  (context: Context, query: Type.Static<typeof AlertsQuery>) => async (page: Page) => {
    const scope = scopeOf(context, query);
    const { data, next } = await listAlertsWithin(context.deps, scope, query.state ?? null, page);
    return { data: data.map(presentAlert), next };
  };

const readAudit =
  (context: Context, query: Type.Static<typeof AuditQuery>) => async (page: Page) => {
    const filter = { subject_id: query.subject ?? null, person_id: query.person ?? null };
    const { scope } = context.person;
    const { data, next } = await listActionsWithin(context.deps, scope, filter, page);
    return { data: data.map((action) => presentAction(context, action)), next };
  };

const alertColumns: Column<AlertRow>[] = [
  ['At', (row) => row.at],
  ['Kind', (row) => row.kind],
  ['State', (row) => row.state],
  ['Merchant', (row) => row.merchant_name],
  ['Detail', (row) => row.detail],
  ['Taken by', (row) => row.taken_by],
  ['Closed by', (row) => row.closed_by],
  ['Reason', (row) => row.close_reason],
  ['ID', (row) => row.id],
];

const auditColumns: Column<Action>[] = [
  ['Number', (row) => row.number],
  ['At', (row) => row.at],
  ['Operator', (row) => row.operator],
  ['Roles', (row) => row.roles?.join(' ') ?? null],
  ['Address', (row) => row.address],
  ['System user', (row) => row.os_user],
  ['Host', (row) => row.host],
  ['Action', (row) => row.action],
  ['Subject', (row) => row.subject_id],
  ['Details', (row) => JSON.stringify(row.details)],
];

export const auditRoutes: ConsoleRoute[] = [
  consoleRoute({
    method: 'GET',
    url: '/api/alerts',
    permission: 'alerts.read',
    schema: { query: AlertsQuery, response: AlertsPage },
    handle: (context, { query }) => answerPage(query, readAlerts(context, query)),
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/alerts.csv',
    permission: 'alerts.read',
    schema: { query: AlertsQuery, response: Type.String() },
    handle: (context, { query }) =>
      answerCsv(context, 'alerts', alertColumns, readAlerts(context, query)),
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/alerts/:id/take',
    permission: 'alerts.handle',
    schema: { params: IdParams, response: AlertRow },
    handle: async ({ deps, operator }, { params }) =>
      presentAlert({ ...(await takeAlert(deps, operator, params.id)), merchant_name: null }),
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/alerts/:id/close',
    permission: 'alerts.handle',
    schema: { params: IdParams, body: CloseAlert, response: AlertRow },
    handle: async ({ deps, operator }, { params, body }) =>
      presentAlert({
        ...(await closeAlert(deps, operator, params.id, body.reason)),
        merchant_name: null,
      }),
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/audit',
    permission: 'audit.read',
    schema: { query: AuditQuery, response: AuditPage },
    handle: (context, { query }) => answerPage(query, readAudit(context, query)),
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/audit.csv',
    permission: 'audit.read',
    schema: { query: AuditQuery, response: Type.String() },
    handle: (context, { query }) =>
      answerCsv(context, 'audit', auditColumns, readAudit(context, query)),
  }),
];

function presentAlert(alert: ListedAlert): AlertRow {
  const { taken_at, closed_at } = alert;
  return {
    id: alert.id,
    at: alert.at,
    kind: alert.kind,
    state: closed_at !== null ? 'closed' : taken_at !== null ? 'taken' : 'open',
    integration_id: alert.integration_id,
    merchant_id: alert.merchant_id,
    merchant_name: alert.merchant_name,
    subject_id: alert.subject_id,
    detail: alert.detail,
    taken_at,
    taken_by: alert.taken_by,
    closed_at,
    closed_by: alert.closed_by,
    close_reason: alert.close_reason,
  };
}

/** An act. Where it came from is for people who may read the audit. */
export function presentAction({ person }: Context, action: ListedAction): Action {
  const mayTrace = person.permissions.includes('audit.read');
  return {
    id: action.id,
    number: action.number,
    at: action.at,
    operator: action.operator,
    person_id: action.person_id,
    roles: action.roles,
    address: mayTrace ? action.address : null,
    session_id: mayTrace ? action.session_id : null,
    os_user: mayTrace ? action.os_user : null,
    host: mayTrace ? action.host : null,
    action: action.action,
    subject_id: action.subject_id,
    details: action.details,
  };
}
