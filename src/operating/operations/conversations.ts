import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { findCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { answerShopper, solveConversation } from '#purchases/conversations/answer-shopper.ts';
import {
  findConversation,
  listEntries,
  listLastEntries,
} from '#purchases/conversations/conversation.sql.ts';
import { type Conversation, entriesShown } from '#purchases/conversations/conversation.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { actionsOn } from './action.ts';
import { namesFor } from './actors.ts';
import {
  AnswerShopper,
  ConversationDetails,
  ConversationRow,
  ConversationsQuery,
  SolveConversation,
} from './conversation.schema.ts';
import { listConversationsPage } from './conversations.sql.ts';
import { ownerColumns } from './csv.ts';
import { defineList, readList } from './list.ts';
import { findOwners } from './owner.sql.ts';
import { mustSee, NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

/** Shoppers' questions. The conversation that changed last comes first. */
export const conversationList = defineList({
  name: 'conversations',
  permission: 'messages.read',
  query: ConversationsQuery,
  row: ConversationRow,
  read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    return readList(
      viewer.deps,
      page,
      (db, range) => listConversationsPage(db, scope, query.status ?? null, range),
      (db, rows) => presentConversations(db, scope, rows),
    );
  },
  columns: [
    ['Last', (row) => row.moved_at],
    ...ownerColumns,
    ['Status', (row) => row.status],
    ['Text', (row) => row.text],
    ['Checkout', (row) => row.checkout_id],
  ],
});

async function presentConversations(db: Handle, scope: Scope, rows: Conversation[]) {
  const ownerOf = await findOwners(db, scope, rows);
  const last = await listLastEntries(db, rows);
  return rows.map((row) => ({
    ...row,
    ...ownerOf(row).owner,
    text: last.get(row.checkout_id)?.text ?? '',
    is_asked: last.get(row.checkout_id)?.author !== 'person',
  }));
}

export async function readConversation(viewer: Viewer, id: string): Promise<ConversationDetails> {
  const { merchant_id } = await mustSee(viewer, 'checkouts', id);
  const { deps, scope } = viewer;
  const key = { merchant_id, checkout_id: id.toLowerCase() };
  return await reading(deps, async (db) => {
    const conversation = await findConversation(db, key);
    const checkout = await findCheckout(db, merchant_id, key.checkout_id);
    if (!conversation || !checkout) throw new NotFound(`No one asked about checkout ${id}.`);
    const [row] = await presentConversations(db, scope, [conversation]);
    const newest = await listEntries(db, key, entriesShown + 1);
    const entries = newest.slice(-entriesShown);
    const people = entries.map(({ person_id }) => person_id);
    const show = await namesFor(viewer, db, people);
    return {
      ...(row as ConversationRow),
      language: checkout.language ?? 'en',
      may_answer: checkout.erased_at === null,
      is_cut: newest.length > entriesShown,
      entries: entries.map((entry) => ({
        ...entry,
        // A shopper's text is shown without a name.
        ...(entry.name !== null && show(entry.person_id, entry.name)),
      })),
    };
  });
}

type Seen = { id: string; merchant: Merchant };

async function mustSeeMerchant(viewer: Viewer, id: string): Promise<Seen> {
  const { merchant_id } = await mustSee(viewer, 'checkouts', id);
  const { deps } = viewer;
  const merchant = await reading(deps, (db) => findMerchant(db, deps.clock, merchant_id));
  if (!merchant) throw new NotFound(`There is no checkout ${id}.`);
  await readConversation(viewer, id);
  return { id: id.toLowerCase(), merchant };
}

const on = actionsOn({
  name: 'conversations',
  response: ConversationDetails,
  see: mustSeeMerchant,
  read: (viewer, { id }) => readConversation(viewer, id),
});

export const conversationActions = {
  answer: on('answer', {
    permission: 'messages.answer',
    body: AnswerShopper,
    change: ({ deps, operator }: Viewer<ViewerDeps & QueueDeps>, { id, merchant }, answer) =>
      answerShopper(deps, operator, merchant, { checkout_id: id }, answer),
  }),
  solve: on('solve', {
    permission: 'messages.answer',
    body: SolveConversation,
    change: ({ deps, operator }, { id, merchant }, { seen_at }) =>
      solveConversation(deps, operator, { merchant_id: merchant.id, checkout_id: id }, seen_at),
  }),
};
