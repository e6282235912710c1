import type { Environment } from '../integrations/integration.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { Handle } from './database.ts';
import { undefinedTable } from './migrate.ts';

/** A process of one environment met the database of the other. */
class WrongEnvironment extends Error {
  constructor(database: Environment, configured: Environment) {
    super(
      `This database belongs to the ${database} environment, and TRANCHE_ENV is ${configured}. ` +
        `Set TRANCHE_ENV=${database}, or DATABASE_URL to a ${configured} database.`,
    );
  }
}

/** For before a migration: whatever a database of the other environment holds, it stays as it is. */
export async function refuseOtherEnvironment(db: Handle, environment: Environment): Promise<void> {
  try {
    const found = await findEnvironment(db);
    if (found !== null && found !== environment) throw new WrongEnvironment(found, environment);
  } catch (error) {
    if ((error as { code?: string }).code !== undefinedTable) throw error;
  }
}

/**
 * A database belongs to the environment that first used it, for ever (D34). Of two first uses at
 * once one wins, and the other one is told.
 */
export async function claimInstallation(
  db: Handle,
  environment: Environment,
  now: Timestamp,
): Promise<void> {
  if ((await findEnvironment(db)) === null) {
    await db
      .insertInto('installation')
      .values({ environment, created_at: now })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  await refuseOtherEnvironment(db, environment);
}

async function findEnvironment(db: Handle): Promise<Environment | null> {
  const row = await db.selectFrom('installation').select('environment').executeTakeFirst();
  return row?.environment ?? null;
}
