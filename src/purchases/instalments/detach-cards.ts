import assert from 'node:assert/strict';
import type { Selectable } from 'kysely';
import { OutcomeUnknown } from '#gateway/gateway.ts';
import { leaseSeconds, nextRetryAt } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import { releaseDue } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import type { CollectDeps } from './collect-instalments.ts';
import { dueReplacedCards, mayDetach, moveDetached } from './instalment.sql.ts';

type ReplacedCard = Selectable<Tables['replaced_cards']>;

const work: MerchantDueWork<'replaced_cards', CollectDeps> = {
  due: dueReplacedCards,
  leaseSeconds,
  batchSize: 10,
  merchantsMax: 50,
  concurrency: 5,
  roundMilliseconds: 0,
  run: (deps, merchant, cards) =>
    Promise.all(cards.map((card) => detachCard(deps, merchant, card))),
};

/** Removes replaced cards from the gateway once no request can still charge them. */
export const detachReplacedCards = (deps: CollectDeps) => runDueWork(deps, work);

export const detachMerchantCards = (deps: CollectDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

async function detachCard(
  deps: CollectDeps,
  merchant: Merchant,
  card: ReplacedCard,
): Promise<void> {
  const { merchant_id, checkout_id, card_ref, lease, attempts } = card;
  assert(lease !== null);
  const now = merchant.now();
  const release = () =>
    releaseDue(
      deps.database.db,
      'replaced_cards',
      { merchant_id, checkout_id, card_ref },
      lease,
      timestamp(nextRetryAt(now, attempts)),
    );
  try {
    // Requests that begin from now on do not use the card. While the card is claimed, the shopper
    // cannot begin an attempt that would store it again.
    const isFree = await transaction(deps, async ({ db }) => {
      await lockCheckout(db, merchant_id, checkout_id);
      return await mayDetach(db, card);
    });
    if (!isFree) return await release();
    const time = merchant.forGateway();
    const key = `${checkout_id}:detach:${card_ref}`;
    await deps.gateways.of(card.gateway).detachCard({ key, merchant: time, card_ref });
    await moveDetached(deps.database.db, card, timestamp(now));
  } catch (error) {
    const about = { err: error, checkout_id };
    deps.log.warn(about, 'a replaced card could not be detached yet');
    try {
      await release();
      await raiseGatewayAlert(deps, merchant, {
        what: `The removal of a replaced card`,
        subject_id: checkout_id,
        error,
        isOutcomeUnknown: error instanceof OutcomeUnknown,
        retries: attempts,
      });
    } catch (failure) {
      // If the release fails too, the lease runs out.
      deps.log.error(
        { ...about, err: failure },
        'the lease of a replaced card could not be released',
      );
    }
  }
}
