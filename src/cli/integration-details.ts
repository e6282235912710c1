import { listInForce } from '#merchants/integrations/credential.sql.ts';
import {
  findIntegration,
  listLimits,
  listManagedMerchantIds,
} from '#merchants/integrations/integration.sql.ts';
import type { Integration } from '#merchants/integrations/integration.ts';
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findLegacyCredential } from '#purchases/legacy/legacy-credential.sql.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { Connection } from './connect.ts';
import { fields, showTime, type Terminal } from './terminal.ts';

/** For the examples in the help. */
export const exampleId = '019a8f40-1c2d-7e63-8a4b-9c0d1e2f3a4b';

type Details = Integration & {
  managed_merchant_ids: string[];
  limits: { endpoint: string; max_requests: number; window_seconds: number }[];
  client_secrets: { created_at: string; expires_at: string | null }[];
  signing_keys: {
    id: string;
    created_at: string;
    expires_at: string | null;
    first_used_at: string | null;
  }[];
  /** Null if it was never enabled. */
  v1: { client_id: string; created_at: string; disabled_at: string | null } | null;
};

/** Everything about an integration except its secrets and their hashes. */
export async function readDetails(connection: Connection, id: string): Promise<Details> {
  const now = timestamp(connection.clock.now());
  return await reading(connection, async (db) => {
    const integration = isUuid(id) ? await findIntegration(db, id) : null;
    if (!integration) {
      throw new OperatorError(
        `There is no integration ${id}. \`tranche integrations list\` lists them.`,
      );
    }
    const secrets = await listInForce(db, 'client_secrets', id, now);
    const keys = await listInForce(db, 'signing_keys', id, now);
    const legacy = await findLegacyCredential(db, id);
    return {
      ...integration,
      managed_merchant_ids: await listManagedMerchantIds(db, id),
      limits: await listLimits(db, id),
      client_secrets: secrets.map(({ created_at, expires_at }) => ({ created_at, expires_at })),
      signing_keys: keys.map(({ id, created_at, expires_at, first_used_at }) => ({
        id,
        created_at,
        expires_at,
        first_used_at,
      })),
      v1: legacy && {
        client_id: legacy.client_id,
        created_at: legacy.created_at,
        disabled_at: legacy.disabled_at,
      },
    };
  });
}

const linesOr = (lines: string[], none: string) => (lines.length > 0 ? lines : none);

export function describeDetails(terminal: Terminal, one: Details): string {
  const since = (time: string | null, otherwise: string) =>
    time === null ? otherwise : `since ${showTime(time)}`;
  const life = ({ created_at, expires_at }: { created_at: string; expires_at: string | null }) => [
    `from ${showTime(created_at)}`,
    ...(expires_at === null ? [] : [`until ${showTime(expires_at)}`]),
  ];
  return fields(terminal, [
    ['ID', one.id],
    one.merchant_id === null
      ? ['Manages', linesOr(one.managed_merchant_ids, 'no merchants')]
      : ['Merchant', one.merchant_id],
    ['Refunds', one.refund_mode],
    ['Signing', since(one.signing_required_at, 'optional until the first signed POST')],
    ['Created', showTime(one.created_at)],
    ['Revoked', since(one.revoked_at, 'no')],
    [
      'Limits',
      linesOr(
        one.limits.map((set) => `${set.endpoint}: ${describeLimit(set)}`),
        "the API's own",
      ),
    ],
    ['Client secrets', linesOr(one.client_secrets.flatMap(life), 'none in force')],
    [
      'Signing keys',
      linesOr(
        one.signing_keys.flatMap((key) => [
          key.id,
          ...life(key),
          key.first_used_at === null ? 'not used yet' : 'in use',
        ]),
        'none in force',
      ),
    ],
    ['v1', describeLegacy(one.v1)],
  ]);
}

function describeLegacy(v1: Details['v1']): string | string[] {
  if (v1 === null) return 'never enabled';
  if (v1.disabled_at !== null) return `off since ${showTime(v1.disabled_at)}`;
  return [`on since ${showTime(v1.created_at)}`, `client_id ${v1.client_id}`];
}

export function describeLimit(limit: { max_requests: number; window_seconds: number }): string {
  const { max_requests, window_seconds } = limit;
  return `${max_requests} per ${window_seconds === 1 ? 'second' : `${window_seconds} seconds`}`;
}
