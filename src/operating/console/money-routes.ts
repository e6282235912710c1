import { balanceLineList, readBalance } from '#operating/operations/balances.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { Balance, MoneyTotals, MoneyTotalsQuery } from '#operating/operations/money.schema.ts';
import { moneyDayList, readMoneyTotals } from '#operating/operations/money.ts';
import { listRoutes } from './pages.ts';
import { type ConsoleRoute, consoleRoute } from './route.ts';

export const moneyRoutes: ConsoleRoute[] = [
  ...listRoutes(moneyDayList),
  consoleRoute({
    url: '/api/money-totals',
    permission: 'money.read',
    schema: { query: MoneyTotalsQuery, response: MoneyTotals },
    handle: (context, { query }) => readMoneyTotals(context, query),
  }),
  consoleRoute({
    url: '/api/merchants/:id/balance',
    permission: 'payouts.read',
    schema: { params: IdParams, response: Balance },
    handle: (context, { params }) => readBalance(context, params.id),
  }),
  ...listRoutes(balanceLineList),
];
