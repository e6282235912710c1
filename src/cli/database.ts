import { pino } from 'pino';
import { distributeDatabase } from '#platform/database/distribute-database.ts';
import {
  GrantsOfNewer,
  grantRole,
  NotOwner,
  type RoleKind,
  roleKinds,
} from '#platform/database/grant-roles.ts';
import { claimInstallation, refuseOtherEnvironment } from '#platform/database/installation.ts';
import { migrate } from '#platform/database/migrate.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { plural } from '#platform/shared/plural.ts';
import { archiveDaysMin, archiveMessages } from '#purchases/shoppers/archive-messages.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { repairClock } from '#record/alerts/repair-clock.ts';
import { type Command, command, UsageError } from './command.ts';
import { withDatabase, withMigrated } from './connect.ts';
import type { Terminal } from './terminal.ts';

/** Tells the operator why a migration is waiting. */
const warningsOn = (terminal: Terminal) =>
  pino({ level: 'warn' }, { write: (line) => terminal.warn(`tranche: ${JSON.parse(line).msg}`) });

const migrateCommand = command({
  name: 'database migrate',
  help: `Applies the missing migrations, each of them completely or not at all. The service does the
same when it starts. A migration that has waited two seconds for a table lets other statements pass,
and retries. A database belongs permanently to the environment (TRANCHE_ENV) that first used it.

  DATABASE_URL=postgres://… TRANCHE_ENV=production tranche database migrate`,
  async run({ print, ...context }) {
    const migrated = await withDatabase(context, async ({ database, clock, config }) => {
      await refuseOtherEnvironment(database.db, config.environment);
      const log = warningsOn(context.terminal);
      const version = await migrate(database, { clock, log });
      await claimInstallation(database.db, config.environment, timestamp(clock.now()));
      return { version, environment: config.environment };
    });
    print(
      migrated,
      () => `The ${migrated.environment} database is at migration ${migrated.version}.`,
    );
  },
});

const distribute = command({
  name: 'database distribute',
  help: `Needs PostgreSQL with the Citus extension. Distributes the migrated tables by merchant and
copies the small shared ones to every node, all of them or none.

Before you run it, stop the service and add the coordinator and the workers to the cluster
(citus_set_coordinator_host, citus_add_node). A single PostgreSQL server does not need this.

  DATABASE_URL=postgres://coordinator/tranche tranche database distribute`,
  async run(context) {
    const { terminal, print } = context;
    const distributed = await withMigrated(context, async (connection) => {
      const tables = await distributeDatabase(connection.database, (table, index, count) =>
        terminal.progress(`${index + 1} of ${count} tables: ${table}`),
      );
      if (tables.length > 0) {
        await operate(connection, connection.operator, 'database distribute', async () => ({
          subject_id: null,
          details: { tables },
          result: null,
        }));
      }
      return tables;
    }).finally(() => terminal.endProgress());
    print({ distributed }, () =>
      distributed.length === 0
        ? 'All tables are already distributed.'
        : `Distributed: ${distributed.join(', ')}.`,
    );
  },
});

const grant = command({
  name: 'database grant',
  usage: ['serve ROLE', 'read ROLE'],
  help: `Grants an existing PostgreSQL role the rights that the service needs, or those that a
reader needs, and revokes all others. A role that serves cannot change the schema, postings,
operators' actions or finished callback attempts. A role that reads sees everything but credentials.
Run the command as the owner of the tables, and again after each migration.

  tranche database grant serve tranche_serve`,
  positionals: ['KIND', 'ROLE'],
  async run(context) {
    const [kind, role = ''] = context.positionals;
    if (!roleKinds.some((known) => known === kind)) {
      throw new UsageError(`The first argument must be ${roleKinds.join(' or ')}.`);
    }
    await withMigrated(context, async (connection) => {
      try {
        await grantRole(connection.database, kind as RoleKind, role);
      } catch (error) {
        const { code, message } = error as Error & { code?: string };
        // 42704: there is no such role.
        const isRefused = error instanceof NotOwner || error instanceof GrantsOfNewer;
        if (code !== '42704' && !isRefused) throw error;
        throw new OperatorError(`The rights were not granted: ${message}.`, { cause: error });
      }
      await operate(connection, connection.operator, 'database grant', async () => ({
        subject_id: null,
        details: { kind, role },
        result: null,
      }));
    });
    context.print({ kind, role }, () => `${role} may ${kind}.`);
  },
});

const repairClockCommand = command({
  name: 'database repair-clock',
  help: `Sets times that lie in the future back to now, by the database's clock: the time after
which a merchant's next checkout and refund are dated, leases, and the due times of refunds,
payments, callbacks, messages and alerts. Creation times that merchants have seen stay as they are.
Correct the wrong clock first: its node refuses to serve until then.

  tranche database repair-clock`,
  async run({ print, ...context }) {
    const repair = await withMigrated(context, (connection) =>
      repairClock(connection, connection.operator),
    );
    print(
      repair,
      () =>
        `Set back to now: ${plural(repair.list_positions, 'time')} of newest checkouts and refunds, ${plural(repair.leases, 'lease')} and ${plural(repair.due_rows, 'due time')}.`,
    );
  },
});

const archive = command({
  name: 'database archive',
  usage: ['[--days N]'],
  help: `Moves the messages of finished checkouts whose last message is older than 730 days, or
--days (at least ${archiveDaysMin}), from the tables that messages are sent from into an archive.
They are still shown, and erasing a shopper erases them too. The service keeps running: each step
locks a hundred checkouts for a few milliseconds. A run that was stopped continues when it is
started again. Run the command as the owner of the tables.

  tranche database archive --days 730`,
  options: { days: { type: 'string' } },
  async run(context) {
    const { terminal, print, values } = context;
    const days = Number(values.days ?? 730);
    if (!Number.isInteger(days) || days < archiveDaysMin) {
      throw new UsageError(`--days must be a whole number, at least ${archiveDaysMin}.`);
    }
    const moved = await withMigrated(context, (connection) =>
      archiveMessages(connection, connection.operator, days, (count) =>
        terminal.progress(plural(count, 'message')),
      ).catch((error: Error & { code?: string }) => {
        // 42501: the role may not delete attempts.
        if (error.code !== '42501') throw error;
        const message = 'Only the owner of the tables can move messages to the archive.';
        throw new OperatorError(message, { cause: error });
      }),
    ).finally(() => terminal.endProgress());
    print({ moved }, () => `Moved ${plural(moved, 'message')} to the archive.`);
  },
});

export const commands: Command[] = [migrateCommand, grant, distribute, repairClockCommand, archive];
