import { ManyInstalments } from '#operating/operations/bulk-action.schema.ts';
import { InstalmentParams, RetriedInstalment } from '#operating/operations/callback.schema.ts';
import { listDeclines } from '#operating/operations/instalments.sql.ts';
import { findInstalments, lastOf, overdueList } from '#operating/operations/instalments.ts';
import { mustSee } from '#operating/operations/viewer.ts';
import { reading } from '#platform/database/transaction.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { bulkRoute } from './bulk-route.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, type ConsoleRoute } from './route.ts';

export const overdueRoutes: ConsoleRoute[] = [
  ...listRoutes(overdueList),
  bulkRoute({
    url: '/api/instalments/retry',
    permission: 'instalments.retry',
    kind: 'instalments retry',
    body: ManyInstalments,
    see: findInstalments,
  }),
  actionRoute({
    url: '/api/instalments/:checkout/:number/retry',
    permission: 'instalments.retry',
    fresh: true,
    schema: { params: InstalmentParams, response: RetriedInstalment },
    async run(context, { params }) {
      const { deps, scope, operator } = context;
      const row = await mustSee(context, 'checkouts', params.checkout);
      const payment = await retryInstalment(deps, operator, `${row.id}:${params.number}`);
      return async () => {
        const declines = await reading(deps, (db) => listDeclines(db, scope, [row]));
        const decline = lastOf(declines, payment);
        const reason = payment.status === 'overdue' ? (decline?.decline_reason ?? null) : null;
        return { ...payment, reason };
      };
    },
  }),
];
