import {
  alertActions,
  alertList,
  differenceList,
  readAlert,
  readDifference,
} from '#operating/operations/alerts.ts';
import { Action, AlertRow } from '#operating/operations/audit.schema.ts';
import { auditList, readActions } from '#operating/operations/audit.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, type ConsoleRoute, consoleRoute } from './route.ts';

export const auditRoutes: ConsoleRoute[] = [
  ...listRoutes(alertList),
  actionRoute(alertActions.take),
  actionRoute(alertActions.close),
  consoleRoute({
    method: 'GET',
    url: '/api/alerts/:id',
    permission: 'alerts.read',
    schema: { params: IdParams, response: AlertRow },
    handle: (context, { params }) => readAlert(context, params.id),
  }),
  ...listRoutes(differenceList),
  consoleRoute({
    method: 'GET',
    url: '/api/differences/:id',
    permission: 'differences.read',
    schema: { params: IdParams, response: AlertRow },
    handle: (context, { params }) => readDifference(context, params.id),
  }),
  actionRoute(alertActions.closeDifference),
  consoleRoute({
    method: 'GET',
    url: '/api/audit/:id',
    permission: 'audit.read',
    schema: { params: IdParams, response: Action },
    async handle(context, { params }) {
      const { data } = await readActions(context, params, { after: null, limit: 1 });
      const [action] = data;
      if (!action) throw notFound();
      return action;
    },
  }),
  ...listRoutes(auditList),
];
