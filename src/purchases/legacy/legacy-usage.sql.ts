import type { Handle } from '#platform/database/database.ts';

export type LegacyUse = 'logins' | 'checkouts';

export async function advanceUsage(
  db: Handle,
  integration_id: string,
  day: string,
  use: LegacyUse,
): Promise<void> {
  await db
    .insertInto('legacy_usage')
    .values({ integration_id, day, [use]: 1 })
    .onConflict((conflict) =>
      conflict
        .columns(['integration_id', 'day'])
        .doUpdateSet((now) => ({ [use]: now(`legacy_usage.${use}`, '+', 1) })),
    )
    .execute();
}
