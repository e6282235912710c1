import { confirmAccess } from '#checks/reconciliation/confirm-access.ts';
import { findAccessStop } from '#checks/reconciliation/gateway-heartbeat.sql.ts';
import { listIntegrations } from '#merchants/integrations/integration.sql.ts';
import { peopleList } from '#operating/operations/people.ts';
import { invitePerson } from '#operating/people/invite-person.ts';
import { revokePerson } from '#operating/people/manage-people.ts';
import { listWithPasskey } from '#operating/people/passkey.sql.ts';
import { operatorRoles } from '#operating/people/permission.ts';
import { listPeople, type Person } from '#operating/people/person.sql.ts';
import { createSignInLink } from '#operating/people/sandbox-link.ts';
import { reading } from '#platform/database/transaction.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import { type CommandGroup, command, idsOf, mustBeId, UsageError } from './command.ts';
import { type Connection, withMigrated } from './connect.ts';
import { listCommand } from './list-command.ts';
import { readSandboxFile } from './sandbox-gateway.ts';
import { fields, showTime, type Terminal, table } from './terminal.ts';

const peopleMax = 10_000;

const invite = command({
  name: 'operators invite',
  summary: 'invite a person to the console',
  usage: ['EMAIL --role ROLE [--role ROLE …] [--merchant ID …] [--name NAME]'],
  help: `Prints a one-time link, which works for 72 hours. With it the person registers a passkey and is
signed in. The roles are ${operatorRoles.join(', ')}.

With --merchant the person sees those merchants and nothing else, so a merchant's own staff can be
invited. Without it they see all merchants.

Inviting a person again ends their sessions and deletes their passkeys at once. They get the new roles
when they accept the invitation: this is the way back from a lost device, and the way to pass an
address to a colleague. To change only roles, open the person in the console.

  tranche operators invite nomsa@example.com --role support --role refunds`,
  positionals: ['EMAIL'],
  options: {
    role: { type: 'string', multiple: true },
    merchant: { type: 'string', multiple: true },
    name: { type: 'string' },
  },
  async run(context) {
    const [email = ''] = context.positionals;
    const { role, merchant, name } = context.values;
    const roles = idsOf(role);
    if (roles.length === 0) throw new UsageError('--role is missing.');
    const ids = idsOf(merchant).map((id) => mustBeId(id, 'merchant'));
    const merchant_ids = ids.length === 0 ? null : ids;
    const invitation = await withMigrated(context, async (connection) =>
      invitePerson({ ...connection, console: await findConsole(connection) }, connection.operator, {
        email,
        name,
        roles,
        merchant_ids,
      }),
    );
    const { url, expires_at, person } = invitation;
    context.print({ url, expires_at }, () =>
      fields(context.terminal, [
        ['Person', person.email],
        ['Roles', person.roles.join(', ')],
        ['Merchants', merchantsOf(person)],
        ['Link', url],
        ['Ends', showTime(expires_at)],
      ]),
    );
  },
});

const list = listCommand(peopleList, {
  name: 'operators list',
  summary: 'the people who may use the console',
  help: `Lists people with their roles and merchants, by address. Revoked people stay in the list, because
the audit names them.`,
  example: 'tranche operators list',
  json: ({ is_registered: _, ...person }) => person,
  show: (terminal, rows) =>
    table(
      terminal,
      ['Address', 'Name', 'Roles'],
      rows.map((row) => ({
        cells: [row.email, row.name, row.roles.join(', ')],
        below: [row.revoked_at === null ? merchantsOf(row) : `revoked ${row.revoked_at}`],
      })),
    ),
});

const revoke = command({
  name: 'operators revoke',
  summary: "revoke a person's access to the console",
  usage: ['EMAIL'],
  help: `Ends the person's sessions, deletes their passkeys and their unused links. It takes effect with
their next request. To let them in again, invite them again.

  tranche operators revoke nomsa@example.com`,
  positionals: ['EMAIL'],
  async run(context) {
    const [email = ''] = context.positionals;
    const {
      oidc_subject: _,
      registered_at: __,
      access_since: ___,
      ...person
    } = await withMigrated(context, (connection) =>
      revokePerson(connection, connection.operator, { email }),
    );
    context.print(person, () => `${person.email} can no longer use the console.`);
  },
});

const confirm = command({
  name: 'operators confirm',
  summary: 'let people sign in again after a restore',
  usage: ['[--reason TEXT]'],
  help: `After a restore no one signs in, because the database may have people, passkeys and credentials
again that were revoked or rotated since the backup. Without --reason it lists the people and the
integrations as they are. Compare them with the alerts \`access_ended\`, \`person_invited\` and
\`ways_in_replaced\` that were posted or logged since the backup, and revoke again what was revoked.
With --reason it lets people sign in, and the audit keeps the reason.

  tranche operators confirm --reason 'Compared with the alerts since 02:00.'`,
  options: { reason: { type: 'string' } },
  async run(context) {
    const { reason } = context.values;
    const found = await withMigrated(context, async (connection) => {
      if (reason !== undefined) await confirmAccess(connection, connection.operator, reason);
      return await readAccess(connection);
    });
    context.print(found, () => showAccess(context.terminal, found));
  },
});

/** Who can sign in and who can use the API, as the database has it now. */
async function readAccess({ database, clock }: Connection) {
  return await reading({ database, clock }, async (db) => {
    const people = await listPeople(db, null, peopleMax);
    const ready = await listWithPasskey(
      db,
      people.map(({ id }) => id),
    );
    const integrations = await listIntegrations(db);
    return {
      waits_since: await findAccessStop(db),
      people: people
        .filter(({ revoked_at }) => revoked_at === null)
        .map(({ id, email, roles, merchant_ids, oidc_subject }) => ({
          ...{ id, email, roles, merchant_ids },
          can_sign_in: oidc_subject !== null || ready.has(id),
        })),
      integrations: integrations
        .filter(({ revoked_at }) => revoked_at === null)
        .map(({ id, merchant_id }) => ({ id, merchant_id })),
    };
  });
}

function showAccess(terminal: Terminal, found: Awaited<ReturnType<typeof readAccess>>): string {
  const { waits_since, people, integrations } = found;
  return [
    waits_since === null
      ? 'People can sign in.'
      : `No one signs in since ${showTime(waits_since)}. Look at each row, then give --reason.`,
    table(
      terminal,
      ['Address', 'Roles', 'Merchants', 'Can sign in'],
      people.map((row) => ({
        cells: [row.email, row.roles.join(', '), merchantsOf(row), row.can_sign_in ? 'yes' : 'no'],
      })),
    ),
    table(
      terminal,
      ['Integration', 'Merchant'],
      integrations.map((row) => ({ cells: [row.id, row.merchant_id ?? 'intermediary'] })),
    ),
  ].join('\n\n');
}

const signIn = command({
  name: 'console sign-in',
  summary: 'a one-time link into the console of a sandbox',
  usage: [''],
  help: `Prints a link that signs in once, within 24 hours, as the sandbox's demo administrator. Only a
sandbox on this machine has such links; production refuses them.

  tranche console sign-in --json`,
  async run(context) {
    const url = await withMigrated(context, async (connection) =>
      createSignInLink(
        { ...connection, console: await findConsole(connection) },
        connection.operator,
      ),
    );
    context.print({ url }, () => url);
  },
});

/** The console of the running sandbox, which may have chosen a free port, or of the settings. */
async function findConsole({
  config,
}: Connection): Promise<{ url: string; allowsSignInLinks: boolean }> {
  if (config.databaseUrl !== null) return config.console;
  const { console_url: url = config.console.url } = await readSandboxFile(config).catch(
    () => ({}) as { console_url?: string },
  );
  const isSandbox = config.environment === 'sandbox';
  return { url, allowsSignInLinks: isSandbox && isLoopback(new URL(url).hostname) };
}

const merchantsOf = ({ merchant_ids }: Pick<Person, 'merchant_ids'>) =>
  merchant_ids?.join(', ') ?? 'all merchants';

export const operators: CommandGroup = {
  name: 'operators',
  summary: 'the people who may use the console',
  commands: [invite, list, revoke, confirm],
};

export const consoleCommands: CommandGroup = {
  name: 'console',
  summary: "the operators' console",
  commands: [signIn],
};
