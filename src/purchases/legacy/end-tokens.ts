import type { Handle } from '#platform/database/database.ts';
import { deleteAllTokens } from './legacy-token.sql.ts';

/** Ends every v1 token. Clients get new ones with their credentials. */
export async function endTokens(db: Handle): Promise<void> {
  await deleteAllTokens(db);
}
