import type { FastifyRequest } from 'fastify';
import type { Selectable } from 'kysely';
import type Type from 'typebox';
import type { Handle } from '#platform/database/database.ts';
import {
  findManagedOwner,
  type ListName,
  listMatches,
  listPage,
} from '#platform/database/merchant-lists.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Links, presentLinks } from '#platform/http/pagination.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { type MerchantApiDeps, merchantFilter, readListRequest } from './merchant-api.ts';

// The steps shared by all endpoints that read checkouts, payment links, refunds and payouts.

/**
 * For an intermediary: the managed merchant that owns a row. Null if there is no such row, or if
 * the request names another merchant: an id that a shop's staff typed may belong to another shop.
 */
export async function managedOwner(
  deps: MerchantApiDeps,
  { caller, body, query }: FastifyRequest,
  list: ListName,
  id: unknown,
): Promise<string | null> {
  if (typeof id !== 'string' || !isUuid(id)) return null;
  const owner = await reading(deps, (db) => findManagedOwner(db, list, caller.id, id));
  const named =
    (body as { merchant_id?: unknown } | null)?.merchant_id ??
    (query as Record<string, unknown>)[merchantFilter];
  return named === undefined || String(named).toLowerCase() === owner ? owner : null;
}

/** The merchant that owns the row in the path, for an intermediary. */
export const pathOwner = (deps: MerchantApiDeps, list: ListName) => (request: FastifyRequest) =>
  managedOwner(deps, request, list, idInPath(request));

/** The row in the path, if the caller may read it. */
export async function findInPath<Row>(
  deps: MerchantApiDeps,
  request: FastifyRequest,
  list: ListName,
  find: (db: Handle, merchant_id: string, id: string) => Promise<Row | null>,
): Promise<Row | null> {
  const id = idInPath(request);
  const merchant_id = request.caller.merchant_id ?? (await pathOwner(deps, list)(request));
  if (merchant_id === null || !isUuid(id)) return null;
  return await reading(deps, (db) => find(db, merchant_id, id));
}

const idInPath = ({ params }: FastifyRequest) => (params as { id: string }).id;

/** A page of a list that takes `ListQuery`, with links to its other pages. */
export async function readMerchantList<List extends 'checkouts' | 'refund_requests'>(
  deps: MerchantApiDeps & { baseUrl: string },
  request: FastifyRequest,
  list: List,
  path: string,
): Promise<{ rows: Selectable<Tables[List]>[]; links: Type.Static<typeof Links> }> {
  const { merchant_id, client_reference_id, page, filter } = await readListRequest(
    deps.callers,
    request,
  );
  const { total, rows } = await reading(deps, (db) =>
    client_reference_id === null
      ? listPage(db, list, merchant_id, page)
      : listMatches(db, list, merchant_id, client_reference_id, page),
  );
  return { rows, links: presentLinks(`${deps.baseUrl}${path}`, filter, total, page) };
}
