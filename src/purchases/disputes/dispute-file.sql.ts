import { sql } from 'kysely';
import type { EvidenceFileKind } from '#gateway/evidence.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { FileTypeName } from '#platform/shared/file-type.ts';
import type { Dispute } from './dispute.ts';
import type { DisputeFile } from './supplied.ts';

type Key = Pick<Dispute, 'merchant_id' | 'id'>;

/** The files of a dispute without their contents, including removed ones that are staged. */
export async function listFiles(db: Handle, { merchant_id, id }: Key): Promise<DisputeFile[]> {
  return await db
    .selectFrom('dispute_files')
    .select(['id', 'kind', 'name', 'media_type', 'sha256', 'added_at', 'removed_at', 'file_ref'])
    .select(sql<number>`length(content)`.as('size'))
    .where('merchant_id', '=', merchant_id)
    .where('dispute_id', '=', id)
    .orderBy('added_at')
    .orderBy('id')
    .execute();
}

export async function findFileContent(
  db: Handle,
  { merchant_id, id }: Key,
  file_id: string,
): Promise<Buffer | null> {
  const row = await db
    .selectFrom('dispute_files')
    .select('content')
    .where('merchant_id', '=', merchant_id)
    .where('dispute_id', '=', id)
    .where('id', '=', file_id)
    .executeTakeFirst();
  return row?.content ?? null;
}

export async function insertFile(
  db: Handle,
  { merchant_id, id: dispute_id, checkout_id }: Dispute,
  file: {
    id: string;
    kind: EvidenceFileKind;
    name: string;
    media_type: FileTypeName;
    sha256: string;
    content: Buffer;
    added_at: Timestamp;
  },
): Promise<void> {
  await db
    .insertInto('dispute_files')
    .values({ merchant_id, dispute_id, checkout_id, ...file, removed_at: null, file_ref: null })
    .execute();
}

/** Removes a dispute's file of the given kind. Returns whether there was one. */
export async function removeFileOf(
  db: Handle,
  { merchant_id, id }: Key,
  kind: EvidenceFileKind,
  removed_at: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('dispute_files')
    .set({ removed_at })
    .where('merchant_id', '=', merchant_id)
    .where('dispute_id', '=', id)
    .where('kind', '=', kind)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Deletes removed files that are not staged. */
export async function deleteRemovedFiles(
  db: Handle,
  { merchant_id, id }: Key,
  staged: string[] | null,
): Promise<void> {
  let query = db
    .deleteFrom('dispute_files')
    .where('merchant_id', '=', merchant_id)
    .where('dispute_id', '=', id)
    .where('removed_at', 'is not', null);
  if (staged && staged.length > 0) query = query.where('id', 'not in', staged);
  await query.execute();
}

export async function updateFileRef(
  db: Handle,
  { merchant_id }: Key,
  id: string,
  file_ref: string,
): Promise<void> {
  await db
    .updateTable('dispute_files')
    .set({ file_ref })
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .execute();
}
