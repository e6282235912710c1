import type { Handle } from '../database/database.ts';
import type { Callback } from './callback.ts';

export async function insertCallback(db: Handle, callback: Callback): Promise<void> {
  await db.insertInto('callbacks').values(callback).execute();
}
