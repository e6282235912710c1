import { listMerchantNames } from '#operating/operations/owner.sql.ts';
import { findMerchantsByName } from '#operating/search/search.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { MerchantNames, MerchantNamesQuery, namedMax } from './merchant-name.schema.ts';
import { type ConsoleRoute, consoleRoute } from './route.ts';

const foundMax = 20;

/** The merchants that a field in the console offers, and the names of the chosen ones. */
export const merchantNameRoutes: ConsoleRoute[] = [
  consoleRoute({
    url: '/api/merchant-names',
    // Every field that offers merchants needs their names. The person's scope limits them.
    permission: 'signed-in',
    schema: { query: MerchantNamesQuery, response: MerchantNames },
    async handle({ deps, scope }, { query: { q = '', ids } }) {
      if (ids === undefined) {
        const found = await reading(deps, (db) => findMerchantsByName(db, scope, q, foundMax));
        return { data: found };
      }
      const wanted = ids.toLowerCase().split(',').filter(isUuid).slice(0, namedMax);
      const names = await reading(deps, (db) => listMerchantNames(db, scope, wanted));
      const data = [...names].map(([id, { name, time_zone }]) => ({ id, name, time_zone }));
      return { data: data.sort((one, other) => (one.name < other.name ? -1 : 1)) };
    },
  }),
];
