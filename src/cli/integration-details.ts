import type { Integration } from '#merchants/integrations/integration.ts';
import type { ListedIntegration } from '#operating/operations/integrations.ts';
import { pick } from './schema-options.ts';
import { fields, showTime, type Terminal } from './terminal.ts';

/** An ID for the examples in the help. */
export const exampleId = '019a8f40-1c2d-7e63-8a4b-9c0d1e2f3a4b';

/** The members of an integration in --json. `integrations show` prints more. */
export const integrationMembers = [
  'id',
  'merchant_id',
  'intermediary',
  'refund_mode',
  'signing_required_at',
  'revoked_at',
  'created_at',
  'events',
  'events_url',
] as const satisfies (keyof Integration)[];

type Details = ReturnType<typeof presentDetails>;

export function presentDetails(one: ListedIntegration) {
  return {
    ...(pick(one, integrationMembers) as Integration),
    managed_merchant_ids: one.managed_merchants.map(({ id }) => id),
    manages_more: one.manages_more,
    limits: one.own_limits,
    client_secrets: one.client_secrets,
    signing_keys: one.signing_keys,
    /** Null if it was never enabled. */
    v1: one.v1 && {
      client_id: one.v1.client_id,
      created_at: one.v1.created_at,
      disabled_at: one.v1.disabled_at,
    },
  };
}

const linesOr = (lines: string[], none: string) => (lines.length > 0 ? lines : none);

export function describeDetails(terminal: Terminal, one: Details): string {
  const since = (time: string | null, otherwise: string) =>
    time === null ? otherwise : `since ${showTime(time)}`;
  const life = ({ created_at, expires_at }: { created_at: string; expires_at: string | null }) => [
    `from ${showTime(created_at)}`,
    ...(expires_at === null ? [] : [`until ${showTime(expires_at)}`]),
  ];
  const more = one.manages_more ? ['and more, see `tranche integrations managed`'] : [];
  return fields(terminal, [
    ['ID', one.id],
    one.merchant_id === null
      ? ['Manages', linesOr([...one.managed_merchant_ids, ...more], 'no merchants')]
      : ['Merchant', one.merchant_id],
    ['Refunds', one.refund_mode],
    ['Signing', since(one.signing_required_at, 'optional until the first signed POST')],
    ['Events', describeEvents(one)],
    ['Created', showTime(one.created_at)],
    ['Revoked', since(one.revoked_at, 'no')],
    [
      'Limits',
      linesOr(
        one.limits.map((set) => `${set.endpoint}: ${describeLimit(set)}`),
        'as in the contract',
      ),
    ],
    ['Client secrets', linesOr(one.client_secrets.flatMap(life), 'none in force')],
    [
      'Signing keys',
      linesOr(
        one.signing_keys.flatMap((key) => [
          key.id,
          ...life(key),
          'first_used_at' in key && key.first_used_at !== null ? 'in use' : 'not used yet',
        ]),
        'none in force',
      ),
    ],
    ['v1', describeLegacy(one.v1)],
  ]);
}

/** The events that are sent to an integration, and the URL that they go to. */
export function describeEvents(one: Pick<Integration, 'events' | 'events_url'>): string | string[] {
  if (one.events.length === 0) return 'results of payments only';
  const lines = [one.events.join(', ')];
  if (one.events_url !== null) return [...lines, `to ${one.events_url}`];
  if (one.events.some((kind) => kind !== 'payouts')) lines.push("to each checkout's notify_url");
  if (one.events.includes('payouts')) lines.push("payouts to the newest checkout's notify_url");
  return lines;
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
