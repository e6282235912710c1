import type { Deps } from '#main.ts';
import { median } from './create.ts';
import { load } from './load.ts';
import { type Account, createAccount, serve, startDatabase } from './service.ts';

export type ListResult = { what: string; few: number; many: number };

/**
 * Sends the same requests alternately for a merchant with few checkouts and one with many. There is
 * one client, so the times include no queueing. Medians in milliseconds.
 */
export async function benchLists(
  options: { few: number; many: number; seconds: number; rounds: number },
  progress: (text: string) => void,
): Promise<ListResult[]> {
  const { server, deps, stop } = await startDatabase();
  try {
    const small = await createAccount(deps);
    const large = await createAccount(deps);
    await fill(deps, small, options.few, progress);
    await fill(deps, large, options.many, progress);
    progress('lists: vacuum');
    await deps.database.pool.query('vacuum analyze checkouts');
    const service = await serve(server.url, 1);
    try {
      const requests = {
        'list, page 1': () => pagePath(1),
        'list, middle page': (total: number) => pagePath(Math.floor(total / 20)),
        'list, last page': (total: number) => pagePath(Math.ceil(total / 10)),
        'get one': (total: number) => `/api/checkouts/${idOf(Math.ceil(total / 2))}`,
      };
      const results: ListResult[] = [];
      for (const [what, path] of Object.entries(requests)) {
        const time = async (account: Account, total: number, seconds = options.seconds) => {
          const url = `${service.url}${path(total)}`;
          const headers = { authorization: `Bearer ${account.client_secret}` };
          const answer = await fetch(url, { headers });
          if (!answer.ok) throw new Error(`${what}: ${answer.status} ${await answer.text()}`);
          const request = { url, method: 'GET' as const, headers };
          return (await load(request, { connections: 1, seconds })).p50;
        };
        const few: number[] = [];
        const many: number[] = [];
        // This warms up, so that the first of the two does not pay for cold caches.
        await time(small, options.few, 1);
        await time(large, options.many, 1);
        for (let round = 1; round <= options.rounds; round += 1) {
          progress(`lists: ${what}, round ${round} of ${options.rounds}`);
          few.push(await time(small, options.few));
          many.push(await time(large, options.many));
        }
        results.push({ what, few: median(few), many: median(many) });
      }
      return results;
    } finally {
      await service.stop();
    }
  } finally {
    await stop();
  }
}

function pagePath(page: number): string {
  return `/api/checkouts?page%5Bnumber%5D=${page}&page%5Bitems%5D=10`;
}

/** The id of the n-th row that `fill` made for a merchant. */
function idOf(number: number): string {
  return `00000000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
}

async function fill(
  deps: Deps,
  account: Account,
  total: number,
  progress: (text: string) => void,
): Promise<void> {
  const step = 100_000;
  for (let from = 1; from <= total; from += step) {
    progress(`lists: ${Math.min(from - 1, total)} of ${total} checkouts made`);
    await deps.database.pool.query(
      `insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
         client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
         signed, created_at, expires_at)
       select $1, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, n, $2, 'received',
         150000, 'ZAR', 'order-' || n, 'https://shop.example/tranche/callback',
         'https://shop.example/paid', 'https://shop.example/cart',
         '{"email": "thandi@example.com"}', '[]', '{1,3,6,12}', true,
         timestamptz '2026-01-01' + n * interval '1 second',
         timestamptz '2026-01-01' + n * interval '1 second' + interval '30 minutes'
       from generate_series($3::bigint, $4::bigint) n`,
      [account.merchant.id, account.id, from, Math.min(from + step - 1, total)],
    );
  }
  await deps.database.pool.query(
    `insert into list_totals values ($1, 'checkouts', $2, '2026-12-01')`,
    [account.merchant.id, total],
  );
}
