import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { notFound } from '#platform/http/errors.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import {
  insertConversation,
  insertEntry,
  listEntries,
  lockConversation,
  moveConversation,
} from './conversation.sql.ts';
import { cleanText, entriesMax } from './conversation.ts';

/**
 * Opens the conversation of a plan with a text of the shopper ("Something is wrong"), or adds the
 * text to it. A page that got no answer sends its text again, so a text equal to the last one is
 * not written twice. Returns false if the conversation is full.
 */
export async function askMerchant(
  deps: { database: Database; clock: Clock; random: Random },
  merchant: Merchant,
  checkout: Pick<Checkout, 'merchant_id' | 'id'>,
  text: string,
): Promise<boolean> {
  const key = { merchant_id: checkout.merchant_id, checkout_id: checkout.id };
  const id = deps.random.uuid();
  return await transaction(deps, async ({ db }) => {
    // Erasing a shopper holds this lock while it deletes the texts.
    const locked = await lockCheckout(db, key.merchant_id, key.checkout_id);
    if (locked?.erased_at !== null) throw notFound('This payment link is not known.');
    const at = timestamp(merchant.now());
    const opened = { status: 'open', moved_at: at } as const;
    await insertConversation(db, { ...key, ...opened });
    await lockConversation(db, key);
    const entries = await listEntries(db, key, entriesMax);
    const last = entries.at(-1);
    const clean = cleanText(text);
    if (last?.author === 'shopper' && last.text === clean) return true;
    if (entries.length >= entriesMax) return false;
    const shopper = { author: 'shopper', person_id: null, name: null } as const;
    await insertEntry(db, { ...key, id, ...shopper, text: clean, at });
    await moveConversation(db, key, opened);
    return true;
  });
}
