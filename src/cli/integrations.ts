import { reading } from '../database/transaction.ts';
import { createIntegration } from '../integrations/create-integration.ts';
import { listInForce } from '../integrations/credential.sql.ts';
import {
  findIntegration,
  listIntegrations,
  listLimits,
  listManagedMerchantIds,
} from '../integrations/integration.sql.ts';
import { type Integration, refundModes } from '../integrations/integration.ts';
import { manageMerchants } from '../integrations/manage-merchants.ts';
import { requireSigning } from '../integrations/require-signing.ts';
import { revokeIntegration } from '../integrations/revoke-integration.ts';
import { credentials, rotateCredential } from '../integrations/rotate-credential.ts';
import { setLimit } from '../integrations/set-limit.ts';
import { disableLegacy } from '../legacy/disable-legacy.ts';
import { enableLegacy } from '../legacy/enable-legacy.ts';
import { findLegacyCredential } from '../legacy/legacy-credential.sql.ts';
import { findMerchant, listMerchants } from '../merchants/merchant.sql.ts';
import { OperatorError } from '../operators/operate.ts';
import { timestamp } from '../shared/clock.ts';
import { isUuid } from '../shared/uuid.ts';
import { type CommandGroup, command, idsOf, oneOf, required, UsageError } from './command.ts';
import { type Connection, withMigrated, withSealing } from './connect.ts';
import { readDuration, readInteger } from './duration.ts';
import { noMerchant } from './merchants.ts';
import { fields, showTime, type Terminal, table } from './terminal.ts';

const exampleId = '019a8f40-1c2d-7e63-8a4b-9c0d1e2f3a4b';

const create = command({
  name: 'integrations create',
  summary: 'issue credentials for a shop or an intermediary',
  usage: [
    '--merchant ID [--refunds manual|auto]',
    '--intermediary --manages ID,ID [--refunds manual|auto]',
  ],
  help: `Issues a client secret and a signing key and prints them this once: the service keeps a hash
of the one and an encrypted form of the other, and cannot show them again.

An integration belongs to one merchant, or is an intermediary that acts for several. With
manual refunds an operator reviews each; with auto they are approved by themselves.

  tranche integrations create --refunds auto \\
    --merchant 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c`,
  options: {
    merchant: { type: 'string' },
    intermediary: { type: 'boolean', default: false },
    manages: { type: 'string', multiple: true },
    refunds: { type: 'string', default: 'manual' },
  },
  async run({ values, terminal, print, ...context }) {
    const refund_mode = oneOf(values.refunds, refundModes, 'refunds');
    const managed_merchant_ids = idsOf(values.manages);
    if (values.intermediary === (values.merchant !== undefined)) {
      throw new UsageError('Say whose it is: either --merchant ID, or --intermediary.');
    }
    if (values.intermediary !== managed_merchant_ids.length > 0) {
      throw new UsageError(
        values.intermediary
          ? 'Say whom the intermediary acts for: --manages ID,ID.'
          : '--manages is for an intermediary: add --intermediary, and leave out --merchant.',
      );
    }
    const issued = await withSealing(context, (connection) =>
      createIntegration(connection, connection.operator, {
        refund_mode,
        ...(values.merchant === undefined
          ? { managed_merchant_ids }
          : { merchant_id: required(values.merchant, 'merchant') }),
      }),
    );
    print(
      issued,
      () => `${fields(terminal, [
        ['ID', issued.id],
        ['Client secret', terminal.accent(issued.client_secret)],
        ['Signing key', terminal.accent(issued.signing_key)],
      ])}

Both are shown this once. Hand them over safely; a lost one is replaced with
\`tranche integrations rotate\`.`,
    );
    return 0;
  },
});

const list = command({
  name: 'integrations list',
  summary: 'all integrations, or those that act for one shop',
  usage: ['[--merchant ID]'],
  help: `Lists integrations, the oldest first. With --merchant: those of that merchant, and the
intermediaries that manage it.

  tranche integrations list --merchant 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c`,
  options: { merchant: { type: 'string' } },
  async run({ values: { merchant }, terminal, print, ...context }) {
    const { integrations, names } = await withMigrated(context, (connection) =>
      reading(connection, async (db) => {
        if (merchant !== undefined && !(isUuid(merchant) && (await findMerchant(db, merchant)))) {
          throw noMerchant(merchant);
        }
        const merchants = await listMerchants(db);
        return {
          integrations: await listIntegrations(db, merchant),
          names: new Map(merchants.map(({ id, name }) => [id, name])),
        };
      }),
    );
    print({ data: integrations }, () =>
      integrations.length === 0
        ? 'There are no integrations yet. Add one with `tranche integrations create`.'
        : table(
            terminal,
            ['ID', 'OF', 'REFUNDS', 'SIGNING', 'STATE'],
            integrations.map((one) => [
              one.id,
              one.merchant_id === null ? 'intermediary' : (names.get(one.merchant_id) ?? ''),
              one.refund_mode,
              one.signing_required_at === null ? 'optional' : 'required',
              one.revoked_at === null ? 'active' : 'revoked',
            ]),
            'OF',
          ),
    );
    return 0;
  },
});

const show = command({
  name: 'integrations show',
  summary: 'one integration: limits, merchants, keys',
  usage: ['ID'],
  help: `Shows an integration: whom it acts for, its limits, since when it must sign, and which
credentials are in force. Never the credentials themselves.

  tranche integrations show ${exampleId}`,
  positionals: ['ID'],
  options: {},
  async run({ positionals: [id = ''], terminal, print, ...context }) {
    const details = await withMigrated(context, (connection) => readDetails(connection, id));
    print(details, () => describe(terminal, details));
    return 0;
  },
});

const manage = command({
  name: 'integrations manage',
  summary: 'change whom an intermediary acts for',
  usage: ['ID [--add ID,ID] [--remove ID,ID]'],
  help: `Adds merchants to an intermediary and removes others, all at once or not at all. Both options
take a comma list and may be repeated.

  tranche integrations manage ${exampleId} \\
    --add 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c`,
  positionals: ['ID'],
  options: {
    add: { type: 'string', multiple: true },
    remove: { type: 'string', multiple: true },
  },
  async run({ positionals: [id = ''], values, terminal, print, ...context }) {
    const wanted = { id, add: idsOf(values.add), remove: idsOf(values.remove) };
    if (wanted.add.length + wanted.remove.length === 0) {
      throw new UsageError('Say what to change: --add ID, --remove ID, or both.');
    }
    const managed_merchant_ids = await withMigrated(context, (connection) =>
      manageMerchants(connection, connection.operator, wanted),
    );
    print({ id, managed_merchant_ids }, () =>
      fields(terminal, [
        ['ID', id],
        ['Manages', managed_merchant_ids.join('\n') || 'no merchants'],
      ]),
    );
    return 0;
  },
});

const requireSigningCommand = command({
  name: 'integrations require-signing',
  summary: 'accept signed POSTs only, from now on',
  usage: ['ID'],
  help: `Makes signatures mandatory for an integration. That happens by itself with its first signed
POST, and in production from the start; there is no way back.

  tranche integrations require-signing ${exampleId}`,
  positionals: ['ID'],
  options: {},
  async run({ positionals: [id = ''], print, ...context }) {
    const required = await withMigrated(context, (connection) =>
      requireSigning(connection, connection.operator, id),
    );
    print(
      required,
      () => `Every POST must be signed since ${showTime(required.signing_required_at)}.`,
    );
    return 0;
  },
});

const limit = command({
  name: 'integrations limit',
  summary: 'set a rate limit for one endpoint',
  usage: ["ID --endpoint 'METHOD /path' --limit N --window SECONDS"],
  help: `Sets how many requests an integration may make to an endpoint within a window, in place of
the API's own limit. For an intermediary it counts per merchant. In force within a second; a
window that has begun keeps its end.

  tranche integrations limit ${exampleId} \\
    --endpoint 'POST /api/checkouts' --limit 20 --window 1`,
  positionals: ['ID'],
  options: {
    endpoint: { type: 'string' },
    limit: { type: 'string' },
    window: { type: 'string' },
  },
  async run({ positionals: [id = ''], values, print, ...context }) {
    const wanted = {
      id,
      endpoint: required(values.endpoint, 'endpoint'),
      max_requests: readInteger(required(values.limit, 'limit'), 'limit'),
      window_seconds: readInteger(required(values.window, 'window'), 'window'),
    };
    const set = await withMigrated(context, (connection) =>
      setLimit(connection, connection.operator, wanted),
    );
    print(set, () => `${set.endpoint}: ${describeLimit(set)}.`);
    return 0;
  },
});

const rotate = command({
  name: 'integrations rotate',
  summary: 'replace a client secret or a signing key',
  usage: ['ID --credential client_secret|signing_key [--overlap 24h]'],
  help: `Issues a new client secret or signing key and prints it this once. The old one stays valid
for the overlap: 24h unless you say otherwise, at most 7d. Callbacks are signed with the old
signing key until the integration first signs with the new one, or the overlap ends.

If a credential leaked, use --overlap 0: everything older stops within a second, also during
another rotation.

  tranche integrations rotate ${exampleId} \\
    --credential signing_key --overlap 7d`,
  positionals: ['ID'],
  options: {
    credential: { type: 'string' },
    overlap: { type: 'string', default: '24h' },
  },
  async run({ positionals: [id = ''], values, terminal, print, ...context }) {
    const credential = oneOf(required(values.credential, 'credential'), credentials, 'credential');
    const overlapSeconds = readDuration(values.overlap, 'overlap');
    const rotated = await withSealing(context, (connection) =>
      rotateCredential(connection, connection.operator, { id, credential, overlapSeconds }),
    );
    print(
      { id: rotated.id, [credential]: rotated.value },
      () => `${fields(terminal, [
        ['ID', rotated.id],
        [credentialNames[credential], terminal.accent(rotated.value)],
        [
          'The old one',
          overlapSeconds === 0
            ? 'is not valid any more'
            : `is valid until ${showTime(rotated.old_valid_until)}`,
        ],
      ])}

The new one is shown this once. Hand it over safely.`,
    );
    return 0;
  },
});

const revoke = command({
  name: 'integrations revoke',
  summary: 'end an integration, for good',
  usage: ['ID'],
  help: `Ends an integration: within a second its client secrets open nothing any more. Payments and
refunds that are under way finish, and their callbacks are still signed with its key. If the
signing key leaked, rotate that with --overlap 0 as well.

  tranche integrations revoke ${exampleId}`,
  positionals: ['ID'],
  options: {},
  async run({ positionals: [id = ''], print, ...context }) {
    const revoked = await withMigrated(context, (connection) =>
      revokeIntegration(connection, connection.operator, id),
    );
    print(revoked, () => `Revoked since ${showTime(revoked.revoked_at)}.`);
    return 0;
  },
});

const v1 = command({
  name: 'integrations v1',
  summary: 'issue or withdraw credentials of the v1 API',
  usage: ['ID --enable', 'ID --disable'],
  help: `With --enable issues a client_id and a client_secret for the legacy v1 API, beside the
integration's own credentials, and prints them this once.

With --disable withdraws them: neither they nor any token that they gave out open anything any more.
Checkouts that were begun under v1 are still notified in the v1 form.

  tranche integrations v1 ${exampleId} --enable`,
  positionals: ['ID'],
  options: { enable: { type: 'boolean' }, disable: { type: 'boolean' } },
  async run({ positionals: [id = ''], values, terminal, print, ...context }) {
    if (values.enable === values.disable) {
      throw new UsageError('Say which: either --enable or --disable.');
    }
    if (values.disable) {
      const withdrawn = await withMigrated(context, (connection) =>
        disableLegacy(connection, connection.operator, id),
      );
      print(withdrawn, () => `v1 is off since ${showTime(withdrawn.disabled_at)}.`);
      return 0;
    }
    const issued = await withMigrated(context, (connection) =>
      enableLegacy(
        { ...connection, environment: connection.config.environment },
        connection.operator,
        id,
      ),
    );
    print(
      issued,
      () => `${fields(terminal, [
        ['ID', issued.id],
        ['v1 client ID', issued.client_id],
        ['v1 client secret', terminal.accent(issued.client_secret)],
      ])}

The secret is shown this once. Hand it over safely; for another one, --disable
and --enable again.`,
    );
    return 0;
  },
});

export const integrations: CommandGroup = {
  name: 'integrations',
  summary: 'credentials and what they may do',
  commands: [create, list, show, manage, requireSigningCommand, limit, rotate, v1, revoke],
};

const credentialNames = { client_secret: 'Client secret', signing_key: 'Signing key' };

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
  /** Null: never enabled. */
  v1: { client_id: string; created_at: string; disabled_at: string | null } | null;
};

/** Everything about an integration but its secrets, nor what was made of them. */
async function readDetails(connection: Connection, id: string): Promise<Details> {
  const now = timestamp(connection.clock.now());
  return await reading(connection, async (db) => {
    const integration = isUuid(id) ? await findIntegration(db, id) : null;
    if (!integration) {
      throw new OperatorError(
        `There is no integration ${id}. \`tranche integrations list\` shows those that there are.`,
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

function describe(terminal: Terminal, one: Details): string {
  const since = (time: string | null, otherwise: string) =>
    time === null ? otherwise : `since ${showTime(time)}`;
  const life = ({ created_at, expires_at }: { created_at: string; expires_at: string | null }) =>
    `from ${showTime(created_at)}${expires_at === null ? '' : `\nuntil ${showTime(expires_at)}`}`;
  return fields(terminal, [
    ['ID', one.id],
    one.merchant_id === null
      ? ['Manages', one.managed_merchant_ids.join('\n') || 'no merchants']
      : ['Merchant', one.merchant_id],
    ['Refunds', one.refund_mode],
    ['Signing', since(one.signing_required_at, 'optional until the first signed POST')],
    ['Created', showTime(one.created_at)],
    ['Revoked', since(one.revoked_at, 'no')],
    [
      'Limits',
      one.limits.map((set) => `${set.endpoint}: ${describeLimit(set)}`).join('\n') ||
        "the API's own",
    ],
    ['Client secrets', one.client_secrets.map(life).join('\n') || 'none in force'],
    [
      'Signing keys',
      one.signing_keys
        .map(
          (key) =>
            `${key.id}\n${life(key)}\n${key.first_used_at === null ? 'not used yet' : 'in use'}`,
        )
        .join('\n') || 'none in force',
    ],
    ['v1', describeLegacy(one.v1)],
  ]);
}

function describeLegacy(v1: Details['v1']): string {
  if (v1 === null) return 'never enabled';
  if (v1.disabled_at !== null) return `off since ${showTime(v1.disabled_at)}`;
  return `on since ${showTime(v1.created_at)}\nclient_id ${v1.client_id}`;
}

function describeLimit(limit: { max_requests: number; window_seconds: number }): string {
  const { max_requests, window_seconds } = limit;
  return `${max_requests} per ${window_seconds === 1 ? 'second' : `${window_seconds} seconds`}`;
}
