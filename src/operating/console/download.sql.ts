import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { isStillAllowed } from '#record/actions/operator-chain.sql.ts';

export type DownloadLease = { lease: string; leased_until: Timestamp };

/** Returns false while the person is downloading another file. */
export async function claimDownload(
  db: Handle,
  person_id: string,
  { lease, leased_until }: DownloadLease,
  now: Timestamp,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('downloads')
    .values({ person_id, lease, leased_until })
    .onConflict((on) =>
      on
        .column('person_id')
        .doUpdateSet({ lease, leased_until })
        .where('downloads.leased_until', '<=', now),
    )
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

/**
 * Returns false if the lease ran out and the person has begun another download, or if the session
 * has ended or its access was narrowed.
 */
export async function updateDownload(
  db: Handle,
  reader: Parameters<typeof isStillAllowed>[0],
  { lease, leased_until }: DownloadLease,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('downloads')
    .set({ leased_until })
    .where('person_id', '=', reader.person_id)
    .where('lease', '=', lease)
    .where(isStillAllowed(reader))
    .executeTakeFirstOrThrow();
  return numUpdatedRows === 1n;
}

export async function releaseDownload(db: Handle, lease: string): Promise<void> {
  await db.deleteFrom('downloads').where('lease', '=', lease).execute();
}
