import { readFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { type Config, readConfig, settingsOf } from '#config.ts';
import { findEmbeddedAddress } from '#hosting/embedded-postgres/server.ts';
import { checkMasterKeys, findMasterKeys } from '#hosting/running/master-key.ts';
import type { IntegrationDeps } from '#merchants/integrations/create-integration.ts';
import type { Viewer } from '#operating/operations/viewer.ts';
import { mailsToMerchants } from '#operating/people/mail-merchant.ts';
import { type Database, openDatabase, verifyConnection } from '#platform/database/database.ts';
import { type DatabaseClock, followDatabaseClock } from '#platform/database/database-clock.ts';
import { claimInstallation } from '#platform/database/installation.ts';
import { compareVersions } from '#platform/database/migrate.ts';
import { serversOf } from '#platform/database/servers.ts';
import { isTransient } from '#platform/database/transaction.ts';
import { systemClock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { createSealing } from '#platform/shared/sealing.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { type OperatorDeps, OperatorError } from '#record/actions/operate.ts';
import type { Surroundings } from './command.ts';

export type Connection = OperatorDeps &
  Omit<ReturnType<typeof settingsOf>, 'baseUrl'> &
  MerchantMailDeps & { config: Config; operator: string; log: Logger };

/** The operator at the command line sees all merchants and may do everything. */
export const viewerOf = <Deps extends { operator: string }>(deps: Deps): Viewer<Deps> => ({
  deps,
  operator: deps.operator,
  scope: 'all merchants',
  may: () => true,
});

/**
 * Opens `DATABASE_URL`, or the running sandbox's database. The database may not be migrated yet.
 */
export async function withDatabase<T>(
  context: Surroundings,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const config = readConfig(context.env, 'command');
  if (config.unset.length > 0) {
    context.terminal.warn(
      `Not set here: ${config.unset.join(', ')}. If the service has them, run commands with its whole environment: otherwise mails are not written, and links lead to this machine.`,
    );
  }
  const url = config.databaseUrl ?? (await findSandboxDatabase(config.dataDir));
  const log = pino({ level: 'silent' });
  const database = (context.openDatabase ?? openDatabase)(url, {
    log,
    maxConnections: 2,
    // A migration may run for hours. The operator can interrupt it.
    queryTimeoutMilliseconds: 24 * 3_600_000,
  });
  let followed: DatabaseClock | null = null;
  try {
    await checkConnection(database, config);
    // A test passes its own clock, which must not be replaced.
    if (context.clock === systemClock) {
      followed = await followDatabaseClock({ database, log }, systemClock);
    }
    return await work({
      config,
      database,
      log,
      clock: followed ?? context.clock,
      random: context.random,
      ...settingsOf(config),
      ...mailsToMerchants({ random: context.random, sendsMessages: config.sendsMessages }),
      operator: config.operator ?? systemUser(),
      origin: { os_user: systemUser(), host: hostname() },
    });
  } finally {
    followed?.stop();
    await database.close();
  }
}

/** Opens the database, and requires that it is migrated and belongs to our environment. */
export async function withMigrated<T>(
  context: Surroundings,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  return await withDatabase(context, async (connection) => {
    const { database, config, clock } = connection;
    const version = await compareVersions(database);
    if (version === 'older') {
      throw new OperatorError(
        'The database lacks migrations that this program needs. Run `tranche database migrate`, or start the service, which migrates it.',
      );
    }
    if (version === 'newer') {
      throw new OperatorError(
        'A newer version of Tranche has changed the database in a way that this one cannot use. Run this command from the newer version.',
      );
    }
    await claimInstallation(database.db, config.environment, timestamp(clock.now()));
    return await work(connection);
  });
}

/** Like `withMigrated`, with the master key, for commands that issue or open credentials. */
export async function withSealing<T>(
  context: Surroundings,
  work: (connection: Connection & IntegrationDeps) => Promise<T>,
): Promise<T> {
  return await withMigrated(context, async (connection) => {
    const { config, database, random } = connection;
    const masterKeys = await findMasterKeys(config);
    await checkMasterKeys(database.db, { ...config, masterKeys });
    const sealing = createSealing(masterKeys, random, config.sealingCipher);
    return await work({ ...connection, sealing });
  });
}

const noSandbox = (dataDir: string) =>
  new OperatorError(
    `No sandbox is running in ${dataDir}. Start one with npm start, or set DATABASE_URL.`,
  );

/**
 * Finds the database of the sandbox, or of the service on embedded PostgreSQL, in a data folder.
 */
async function findSandboxDatabase(dataDir: string): Promise<string> {
  try {
    const { database_url } = JSON.parse(await readFile(join(dataDir, 'sandbox.json'), 'utf8'));
    if (typeof database_url === 'string') return database_url;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES') {
      throw new OperatorError(
        `The sandbox in ${dataDir} belongs to another user. Run this command as that user.`,
      );
    }
  }
  return (await findEmbeddedAddress(dataDir)) ?? Promise.reject(noSandbox(dataDir));
}

/** Tries each host once until one takes writes. If none does, the error names them. */
async function checkConnection(database: Database, config: Config): Promise<void> {
  const servers = serversOf(config.databaseUrl ?? '') ?? [];
  try {
    // A connection that fails makes the next one try the next host.
    for (let others = servers.length - 1; ; others -= 1) {
      try {
        await database.pool.query('select');
        break;
      } catch (error) {
        if (others <= 0 || !isTransient(error)) throw error;
      }
    }
  } catch (error) {
    // A killed sandbox leaves its file behind, and another program may use its port by now.
    if (config.databaseUrl === null) throw noSandbox(config.dataDir);
    const host = servers.map((server) => new URL(server).host).join(', ');
    const { message, code } = error as Error & { code?: string };
    const reason = message || code || 'no answer';
    throw new OperatorError(
      isTransient(error)
        ? `The database at ${host} does not answer (${reason}). Check DATABASE_URL, and that the server is running.`
        : `The database at ${host} refuses the connection (${reason}). Check DATABASE_URL.`,
      { cause: error },
    );
  }
  await verifyConnection(database);
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a user ID that has no account.
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
