import type { Environment } from '../integrations/integration.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { Handle } from './database.ts';

/** A process of one environment met the database of the other. */
class WrongEnvironment extends Error {
  constructor(database: Environment, configured: Environment) {
    super(
      `This database belongs to the ${database} environment, and TRANCHE_ENV is ${configured}. ` +
        `Set TRANCHE_ENV=${database}, or DATABASE_URL to a ${configured} database.`,
    );
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
  const find = () => db.selectFrom('installation').select('environment').executeTakeFirst();
  let found = await find();
  if (!found) {
    await db
      .insertInto('installation')
      .values({ environment, created_at: now })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    found = await find();
  }
  if (found && found.environment !== environment) {
    throw new WrongEnvironment(found.environment, environment);
  }
}
