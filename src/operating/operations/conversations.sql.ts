import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Conversation, ConversationStatus } from '#purchases/conversations/conversation.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

export async function listConversationsPage(
  db: Handle,
  scope: Scope,
  status: ConversationStatus | null,
  page: PageOf,
): Promise<Page<Conversation>> {
  let query = db.selectFrom('conversations').selectAll();
  if (status !== null) query = query.where('status', '=', status);
  return await readRange(scoped(query, scope), page, ['moved_at', 'checkout_id'], 'desc');
}
