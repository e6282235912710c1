import { isDeepStrictEqual } from 'node:util';
import { confirmAccess } from '#checks/reconciliation/confirm-access.ts';
import { findAccessWait } from '#checks/reconciliation/gateway-heartbeat.sql.ts';
import { listIntegrations } from '#merchants/integrations/integration.sql.ts';
import type { Person as PersonShown } from '#operating/operations/people.schema.ts';
import { peopleList } from '#operating/operations/people.ts';
import { listAlertChoices } from '#operating/people/alert-mail.sql.ts';
import { alertMailsOf } from '#operating/people/alert-mail.ts';
import { checkAccess, checkEmail } from '#operating/people/check-person.ts';
import { chooseAlertMails } from '#operating/people/choose-alert-mails.ts';
import { confirmPerson } from '#operating/people/confirm-person.ts';
import type { ConsolePlaces } from '#operating/people/console-place.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import { invitePerson, releaseInvitation } from '#operating/people/invite-person.ts';
import { type Access, revokePerson } from '#operating/people/manage-people.ts';
import { operatorRoles } from '#operating/people/permission.ts';
import {
  findPersonByEmail,
  identityOf,
  listAccesses,
  listPeople,
  listWithSignInMethod,
  type Person,
} from '#operating/people/person.sql.ts';
import { listInvitations } from '#operating/people/person-link.sql.ts';
import { createSignInLink } from '#operating/people/sandbox-link.ts';
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import { merchantAlerts } from '#purchases/messages/merchant-mail.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Command, command, idsOf, mustBeId, oneOf, required, UsageError } from './command.ts';
import { type Connection, withMigrated, withSealing } from './connect.ts';
import { listCommand } from './list-command.ts';
import { type LostAlert, listLostAlerts } from './lost-alerts.ts';
import { readSandboxFile, type SandboxFile } from './sandbox-gateway.ts';
import { pick } from './schema-options.ts';
import { byDay, fields, showTime, type Terminal, table } from './terminal.ts';

const peopleMax = 10_000;

/** The members of a person in --json that several commands print. */
const personMembers = ['id', 'email', 'name', 'roles', 'merchant_ids'] as const;

const accessOptions = {
  role: { type: 'string', multiple: true },
  merchant: { type: 'string', multiple: true },
} as const;

const invite = command({
  name: 'operators invite',
  usage: ['EMAIL --role ROLE [--role ROLE …] [--merchant ID …] [--name NAME]'],
  help: `Prints a one-time link, which works for 72 hours. With it the person registers a passkey
and is signed in. The roles are ${operatorRoles.join(', ')}.

With --merchant the person sees those merchants and nothing else, so a merchant's own staff can be
invited. Without it they see all merchants.

Inviting a person again ends their sessions and deletes their passkeys at once. They get the new
roles when they accept the invitation. Do this when a device is lost, or to pass an address on to a
colleague. To change only roles, open the person in the console.

  tranche operators invite nomsa@example.com --role support --role refunds`,
  positionals: ['EMAIL'],
  options: { ...accessOptions, name: { type: 'string' } },
  async run(context) {
    const [email = ''] = context.positionals;
    const { name } = context.values;
    const access = accessOf(context.values);
    if (access === null) throw new UsageError('--role is missing.');
    const invitation = await withMigrated(context, async (connection) =>
      invitePerson({ ...connection, console: await findConsole(connection) }, connection.operator, {
        email,
        name,
        ...access,
      }),
    );
    const { url, expires_at, person } = invitation;
    context.print({ url, expires_at }, () =>
      showInvitation(context.terminal, { ...person, link: url, expires_at }),
    );
  },
});

const list = listCommand(peopleList, {
  name: 'operators list',
  help: `Lists people with their roles and merchants, by address. Revoked people stay in the list,
because the audit names them.`,
  example: 'tranche operators list',
  json: ({ is_registered: _, identity_id: __, ...person }) => person,
  show: (terminal, rows) =>
    table(
      terminal,
      ['Address', 'Name', 'Roles'],
      rows.map((row) => ({
        cells: [row.email, row.name, row.roles.join(', ')],
        below: [
          row.revoked_at === null ? merchantsOf(row) : `revoked ${row.revoked_at}`,
          ...(row.is_confirmed || row.revoked_at !== null ? [] : [showUnconfirmed(row)]),
        ],
      })),
    ),
});

const showUnconfirmed = ({ is_registered }: PersonShown) =>
  is_registered ? 'unconfirmed: one administrator gave this access or saw its link' : 'invited';

const revoke = command({
  name: 'operators revoke',
  usage: ['EMAIL'],
  help: `Ends all of the person's access, with their sessions, passkeys and unused links. It takes
effect at their next request. To let them in again, invite them again.

  tranche operators revoke nomsa@example.com`,
  positionals: ['EMAIL'],
  async run(context) {
    const [email = ''] = context.positionals;
    const person = await withMigrated(context, (connection) =>
      revokePerson(connection, connection.operator, { email }),
    );
    context.print(
      pick(person, [...personMembers, 'created_at', 'revoked_at']),
      () => `${person.email} can no longer use the console.`,
    );
  },
});

const release = command({
  name: 'operators release',
  usage: ['EMAIL', 'EMAIL --role ROLE [--role ROLE …] [--merchant ID …]'],
  help: `Releases an invitation that is waiting for a second administrator, if the console has no
other administrator. Ask the person first, in a way that you trust. Without --role the command shows
who made the invitation and what access it gives. With the same roles and merchants it releases the
invitation: the person's passkeys and sessions end, and they get a new link by mail. If no mail is
set up, the link is printed. The operator who made an invitation cannot release it. The audit, an
alert and an e-mail to the person report the release, as they report one from the console.

  TRANCHE_OPERATOR=sipho \\
    tranche operators release nomsa@example.com --role support --role refunds`,
  positionals: ['EMAIL'],
  options: accessOptions,
  async run(context) {
    const [email = ''] = context.positionals;
    const was = accessOf(context.values);
    await withSealing(context, async (connection) => {
      const { operator } = connection;
      const { id, ...held } = await findHeld(connection, email);
      if (was === null) return context.print(held, () => showInvitation(context.terminal, held));
      const deps = { ...connection, console: await findConsole(connection) };
      const released = await releaseInvitation(deps, operator, id, was);
      const { url, expires_at } = released;
      context.print({ url, expires_at }, () =>
        showInvitation(context.terminal, { ...released.person, link: url ?? 'mailed', expires_at }),
      );
    });
  },
});

/** The roles and merchants in the options. Null if there is no role. */
function accessOf(values: { role?: string[]; merchant?: string[] }): Access | null {
  const roles = idsOf(values.role);
  const ids = idsOf(values.merchant).map((id) => mustBeId(id, 'merchant'));
  if (roles.length === 0 && ids.length > 0) throw new UsageError('--role is missing.');
  return roles.length === 0
    ? null
    : checkAccess({ roles, merchant_ids: ids.length > 0 ? ids : null });
}

/** Finds a person's invitation that is waiting for a second administrator. */
async function findHeld(connection: Connection, email: string) {
  const now = timestamp(connection.clock.now());
  const accesses = await mustFindAccesses(connection, email);
  const ids = accesses.map(({ id }) => id);
  const [held] = await reading(connection, (db) => listInvitations(db, ids, now));
  const person = accesses.find(({ id }) => id === held?.person_id);
  if (!held || !person || held.released_at !== null) {
    throw new OperatorError(`No invitation for ${email} is waiting for a second administrator.`);
  }
  const { made_by, expires_at } = held;
  const { name = person.name, roles, merchant_ids } = held.access ?? person;
  return { id: person.id, email: person.email, name, made_by, roles, merchant_ids, expires_at };
}

async function mustFindAccesses(connection: Connection, address: string): Promise<Person[]> {
  const email = checkEmail(address);
  const accesses = await reading(connection, async (db) => {
    const person = await findPersonByEmail(db, email);
    return person ? await listAccesses(db, person.id) : [];
  });
  if (accesses.length === 0) throw new OperatorError(`There is no person ${address}.`);
  return accesses;
}

const showInvitation = (
  terminal: Terminal,
  shown: Access &
    Pick<Person, 'email' | 'name'> & { made_by?: string; link?: string; expires_at: string },
) =>
  fields(terminal, [
    ['Person', shown.email],
    ['Name', shown.name],
    ['Invited by', shown.made_by ?? null],
    ['Roles', shown.roles.join(', ')],
    ['Merchants', merchantsOf(shown)],
    ['Link', shown.link ?? null],
    ['Ends', showTime(shown.expires_at)],
  ]);

const confirm = command({
  name: 'operators confirm',
  usage: ['EMAIL [--role ROLE …] [--merchant ID …]', '[--log FILE|-] [--reason TEXT]'],
  help: `With EMAIL, shows a person to whom a merchant's administrator gave or added access, or
whose link was seen by the administrator who released it without mail. With the same roles and
merchants, confirms the person, who can then be the second approver. Confirm only a person that you
know, not a second identity of that administrator.

Without EMAIL, the command is for the time after a restore, or after a start at which the gateway
did not say whether there had been one. Until you give --reason, no one can sign in, because the
database may again have people, passkeys and credentials that were revoked or rotated after the
backup. Without --reason it lists the people and the integrations as they are. With --log it reads
the service's log, or alerts that were posted, one JSON object a line (- reads standard input), and
lists the changes of access in it that this database does not have: the alerts \`access_ended\`,
\`access_widened\`, \`person_invited\` and \`ways_in_replaced\`. Revoke again what was revoked. With
--reason it lets people sign in, and the audit keeps the reason.

  tranche operators confirm thabo@example.com --role refunds --merchant ID
  tranche operators confirm --log /var/log/tranche.log
  tranche operators confirm --reason 'Compared with the alerts since 02:00.'`,
  optionalPositionals: ['EMAIL'],
  options: { reason: { type: 'string' }, log: { type: 'string' }, ...accessOptions },
  async run(context) {
    const { reason, log } = context.values;
    const [email] = context.positionals;
    const was = accessOf(context.values);
    if (email === undefined ? was !== null : (reason ?? log) !== undefined) {
      throw new UsageError('Confirm a person, or access after a restore: one at a time.');
    }
    if (email !== undefined) {
      const person = await withMigrated(context, (connection) =>
        findOrConfirm(connection, email, was),
      );
      context.print(pick(person, [...personMembers, 'unconfirmed_since']), () =>
        showConfirmed(context.terminal, person),
      );
      return;
    }
    const found = await withMigrated(context, async (connection) => {
      const { db } = connection.database;
      const lost = log === undefined ? {} : { lost: await listLostAlerts(db, log, context.stdin) };
      // Access is opened last: if the log cannot be read, no one can sign in yet.
      if (reason !== undefined) {
        const deps = { ...connection, endAccess: endAllAccess };
        await confirmAccess(deps, connection.operator, reason);
      }
      return { ...(await readAccess(connection)), ...lost };
    });
    context.print(found, () => showAccess(context.terminal, found));
  },
});

/**
 * Finds a person. If the operator stated roles and merchants, confirms the person's access that has
 * them.
 */
async function findOrConfirm(connection: Connection, email: string, was: Access | null) {
  const accesses = await mustFindAccesses(connection, email);
  const isMeant = ({ roles, merchant_ids }: Person) =>
    isDeepStrictEqual({ roles, merchant_ids }, was);
  const waiting = accesses.filter((one) => one.unconfirmed_since !== null);
  const found = (accesses.find(isMeant) ?? waiting[0] ?? accesses[0]) as Person;
  const { operator } = connection;
  return was ? await confirmPerson(connection, operator, found.id, was) : found;
}

const showConfirmed = (terminal: Terminal, person: Person): string =>
  fields(terminal, [
    ['Person', `${person.name}, ${person.email}`],
    ['Roles', person.roles.join(', ')],
    ['Merchants', merchantsOf(person)],
    [
      'Can be the second approver',
      person.unconfirmed_since === null
        ? 'yes'
        : `no, unconfirmed since ${showTime(person.unconfirmed_since)}`,
    ],
  ]);

/**
 * The people who can sign in and the credentials that can use the API, according to the database.
 */
async function readAccess({ database, clock }: Connection) {
  return await reading({ database, clock }, async (db) => {
    const people = await listPeople(db, null, peopleMax);
    const ready = await listWithSignInMethod(db, people.map(identityOf));
    const integrations = await listIntegrations(db);
    return {
      waits_since: await findAccessWait(db),
      people: people
        .filter(({ revoked_at }) => revoked_at === null)
        .map((person) => {
          const { id, email, roles, merchant_ids, registered_at } = person;
          const can_sign_in = registered_at !== null && ready.has(identityOf(person));
          return { id, email, roles, merchant_ids, can_sign_in };
        }),
      integrations: integrations
        .filter(({ revoked_at }) => revoked_at === null)
        .map(({ id, merchant_id }) => ({ id, merchant_id })),
    };
  });
}

function showAccess(
  terminal: Terminal,
  found: Awaited<ReturnType<typeof readAccess>> & { lost?: LostAlert[] },
): string {
  const { waits_since, people, integrations, lost } = found;
  return [
    waits_since === null
      ? 'People can sign in.'
      : `No one has been able to sign in since ${showTime(waits_since)}. Look at each row, then give --reason.`,
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
    ...(lost === undefined ? [] : [showLost(terminal, lost)]),
  ].join('\n\n');
}

const showLost = (terminal: Terminal, lost: LostAlert[]) =>
  lost.length === 0
    ? 'This database has all the changes of access that are in the log.'
    : `The log has changes of access that this database does not have:\n${byDay(
        terminal,
        lost.map(({ at, kind, detail }) => ({ at, cells: [kind, detail] })),
      )}`;

const signIn = command({
  name: 'console sign-in',
  help: `Prints a link that signs in once, within 24 hours, as the sandbox's demo administrator.
Only a sandbox on this machine has such links; production refuses them.

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

/**
 * The console of the running sandbox, which may have chosen a free port, or else the one in the
 * settings.
 */
async function findConsole({
  config,
}: Connection): Promise<ConsolePlaces & { allowsSignInLinks: boolean }> {
  if (config.databaseUrl !== null) return config.console;
  const { console_url: url = config.console.url, merchant_console_url: merchantUrl = null } =
    await readSandboxFile(config).catch(
      () => ({}) as Pick<SandboxFile, 'console_url' | 'merchant_console_url'>,
    );
  const isSandbox = config.environment === 'sandbox';
  return { url, merchantUrl, allowsSignInLinks: isSandbox && isLoopback(new URL(url).hostname) };
}

const alertMails = command({
  name: 'operators alert-mails',
  usage: ['EMAIL --merchant ID [--mail EVENT …]', 'EMAIL --merchant ID --none'],
  help: `Shows which events of a merchant one of its own people gets by mail. With --mail, the
person gets the events that it names and no others; with --none, no events. The events are
${merchantAlerts.join(', ')}.

  tranche operators alert-mails thabo@shop.example --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11 \\
    --mail dispute_opened --mail payout_returned`,
  positionals: ['EMAIL'],
  options: {
    merchant: { type: 'string' },
    mail: { type: 'string', multiple: true },
    none: { type: 'boolean' },
  },
  async run(context) {
    const [email = ''] = context.positionals;
    const { mail, none } = context.values;
    const merchant_id = mustBeId(required(context.values.merchant, 'merchant'), 'merchant');
    if (mail && none) throw new UsageError('Give --mail or --none, not both.');
    const kinds = (mail ?? []).map((kind) => oneOf(kind, merchantAlerts, 'mail'));
    const mails = await withMigrated(context, async (connection) => {
      const accesses = await mustFindAccesses(connection, email);
      const person = accesses.find((one) => one.merchant_ids?.includes(merchant_id));
      if (!person) {
        throw new OperatorError(`${email} is not one of this merchant’s own people.`);
      }
      const wanted = { merchant_id, kinds };
      if (mail || none) {
        await chooseAlertMails(connection, connection.operator, person.id, wanted);
      }
      const of = { merchant_id, person_id: person.id };
      const chosen = await reading(connection, (db) => listAlertChoices(db, of));
      return alertMailsOf(person.roles, chosen);
    });
    context.print({ email, merchant_id, mails }, () =>
      fields(
        context.terminal,
        mails.map(({ kind, is_wanted }) => [kind, is_wanted ? 'mail' : 'no mail']),
      ),
    );
  },
});

const merchantsOf = ({ merchant_ids }: Pick<Person, 'merchant_ids'>) =>
  merchant_ids?.join(', ') ?? 'all merchants';

export const commands: Command[] = [invite, release, list, revoke, confirm, alertMails, signIn];
