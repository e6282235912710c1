import {
  alertActions,
  alertList,
  differenceList,
  readAlert,
  readDifference,
} from '#operating/operations/alerts.ts';
import { Action, AlertRow } from '#operating/operations/audit.schema.ts';
import { auditList, readActions } from '#operating/operations/audit.ts';
import { notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import { actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

export const auditRoutes: ConsoleRoute[] = [
  ...listRoutes(alertList),
  detailRoute('alerts', 'alerts.read', AlertRow, readAlert),
  ...listRoutes(differenceList),
  detailRoute('differences', 'differences.read', AlertRow, readDifference),
  ...actionRoutes(alertActions),
  detailRoute('audit', 'audit.read', Action, async (context, id) => {
    const { data } = await readActions(context, { id }, { after: null, limit: 1 });
    const [action] = data;
    if (!action) throw notFound();
    return action;
  }),
  ...listRoutes(auditList),
];
