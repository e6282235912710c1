import { isMailAddress, onOwnClock } from '#merchants/merchant.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { type QueueDeps, queueMessages } from '#purchases/messages/queue-messages.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { mustFindDispute, refuseUnlessOpen } from './answer-dispute.ts';
import { lockDispute, moveDispute } from './dispute.sql.ts';
import { asksAgainAt, asksUntil } from './dispute.ts';

/**
 * Asks the merchant by mail what it knows about the order, with a deadline before the bank's. The
 * mail goes to the address that the merchant shows as its contact. It names the order but not the
 * shopper.
 */
export async function askMerchant(
  deps: OperatorDeps & QueueDeps,
  operator: string,
  text: string,
): Promise<void> {
  const { dispute, merchant: row } = await mustFindDispute(deps.database.db, text);
  const merchant = onOwnClock(deps.clock, row);
  if (merchant.contact === null || !isMailAddress(merchant.contact)) {
    throw new OperatorError(
      `The contact of ${merchant.name} is not an e-mail address. Set one on the merchant's page, or ask in another way.`,
    );
  }
  if (!deps.sendsMessages) {
    throw new OperatorError('This service sends no mail. Ask the merchant in another way.');
  }
  await operate(deps, operator, 'disputes ask', async (db) => {
    const current = await lockDispute(db, dispute);
    refuseUnlessOpen(current);
    const now = merchant.now();
    const again = asksAgainAt(current);
    if (again !== null && Temporal.Instant.compare(now, again) < 0) {
      throw new OperatorError(
        `${merchant.name} was asked less than a day ago. Ask again tomorrow, or in another way.`,
      );
    }
    const asked_at = timestamp(now);
    const asked_until = timestamp(asksUntil(current, now));
    await moveDispute(db, current, { asked_at, asked_until });
    const { id, merchant_id, checkout_id, amount, reason, dispute_ref } = current;
    const facts = { dispute: id, amount, reason, expires_at: asked_until };
    const about = `${id} ${asked_at}`;
    await queueMessages(deps, db, [
      { merchant_id, checkout_id, kind: 'evidence_asked', about, facts, at: asked_at },
    ]);
    const details = { dispute_ref, until: asked_until };
    return { subject_id: id, merchant_id, details, result: null };
  });
}
