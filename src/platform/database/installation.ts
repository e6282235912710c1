import type { Timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { Handle } from './database.ts';
import { undefinedTable } from './migrate.ts';

/** The database belongs to the other environment. */
class WrongEnvironment extends Error {
  constructor(database: Environment, configured: Environment) {
    super(
      `This database belongs to the ${database} environment, and TRANCHE_ENV is ${configured}. ` +
        `Set TRANCHE_ENV=${database}, or DATABASE_URL to a ${configured} database.`,
    );
  }
}

/** Call this before migrating: a database of the other environment must stay as it is. */
export async function refuseOtherEnvironment(db: Handle, environment: Environment): Promise<void> {
  try {
    const found = await findEnvironment(db);
    if (found !== null && found !== environment) throw new WrongEnvironment(found, environment);
  } catch (error) {
    if ((error as { code?: string }).code !== undefinedTable) throw error;
  }
}

/**
 * A database belongs to the environment that used it first, for ever (decision 0015). If processes
 * of both environments start at once, one wins and the other is refused.
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

/** Stores the first key check, or replaces `old`. Returns the stored key check. */
export async function setKeyCheck(
  db: Handle,
  keyCheck: Buffer,
  old: Buffer | null,
): Promise<Buffer> {
  const claimed = await db
    .updateTable('installation')
    .set({ key_check: keyCheck })
    .where('key_check', old === null ? 'is' : '=', old)
    .executeTakeFirst();
  if (claimed.numUpdatedRows > 0n) return keyCheck;
  const row = await db.selectFrom('installation').select('key_check').executeTakeFirst();
  return row?.key_check ?? keyCheck;
}

async function findEnvironment(db: Handle): Promise<Environment | null> {
  const row = await db.selectFrom('installation').select('environment').executeTakeFirst();
  return row?.environment ?? null;
}
