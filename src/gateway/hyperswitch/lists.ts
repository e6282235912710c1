import { type MerchantTime, OutcomeUnknown } from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';
import { fail, type HyperswitchApi } from './api.ts';

const pageSize = 100;

type Page = { data: Payment[]; next: string | null };

/**
 * One page of payments, newest first. `after` is the `next` of the page before.
 *
 * The real server pages by the time of creation. So `ending_before` gives the older payments, and
 * also the payment that it names and all others that were created at the same time. `next` is the
 * id to send, followed by the other ids of that time that were already returned, so that the
 * following page can leave them all out.
 */
export async function listPage(
  api: HyperswitchApi,
  after: string | null,
  { customer_id, merchant }: { customer_id?: string; merchant?: MerchantTime } = {},
): Promise<Page> {
  const known = after === null ? [] : after.split(' ');
  const query = new URLSearchParams({
    ...(customer_id !== undefined && { customer_id }),
    limit: String(pageSize),
    ...(known[0] !== undefined && { ending_before: known[0] }),
  });
  const { data } = await api
    .call<{ data: Payment[] }>('GET', `/payments/list?${query}`, { merchant })
    .catch(fail);
  const fresh = data.filter(({ payment_id }) => !known.includes(payment_id));
  if (data.length < pageSize) return { data: fresh, next: null };
  const last = fresh.at(-1);
  if (last === undefined) throw new OutcomeUnknown('a page of the payments has nothing new');
  const sameTime = data.filter(({ created }) => created === last.created).reverse();
  return { data: fresh, next: sameTime.map(({ payment_id }) => payment_id).join(' ') };
}

const atOnceMax = 8;

/** Looks up what a list leaves out, a few at once, in the order of the list. */
export async function fewAtOnce<T, R>(all: T[], lookUp: (one: T) => Promise<R>): Promise<R[]> {
  const found: R[] = [];
  for (let first = 0; first < all.length; first += atOnceMax) {
    found.push(...(await Promise.all(all.slice(first, first + atOnceMax).map(lookUp))));
  }
  return found;
}
