import type { Handle } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { firstIdAt } from '#platform/shared/uuid.ts';
import { lockCheckouts } from '#purchases/checkouts/checkout.sql.ts';
import { listCheckoutsWithMessages } from '#purchases/messages/archive.sql.ts';
import { moveToArchive } from '#purchases/messages/move-to-archive.ts';
import { type OperatorDeps, operate } from '#record/actions/operate.ts';
import { timesOf } from './erase-shopper.ts';
import { listOpenReasons } from './erasure.sql.ts';

/** An order can be refunded for a hundred days, and few messages are sent about it after that. */
export const archiveDaysMin = 100;

/**
 * One transaction moves the messages of this many checkouts, and locks the checkouts until it ends.
 */
const checkoutsTogether = 100;

/** This many merchants are read at a time. */
const merchantsTogether = 100;

const firstId = '00000000-0000-0000-0000-000000000000';

/**
 * Moves the messages of finished checkouts to the archive if the last message of the checkout is
 * older than `days`. They can be read there as before. Each message is moved once, even if two runs
 * overlap or a run is stopped. The audit records the start and the end, so that a stopped run is
 * recorded too. Returns how many messages were moved.
 */
export async function archiveMessages(
  deps: OperatorDeps,
  operator: string,
  days: number,
  report: (moved: number) => void = () => {},
): Promise<number> {
  const before = firstIdAt(deps.clock.now().subtract({ hours: 24 * days }).epochMilliseconds);
  await operate(deps, operator, 'database archive', async () => ({
    ...{ subject_id: null, details: { days }, result: null },
  }));
  let moved = 0;
  for await (const merchant_id of listMerchantIds(deps)) {
    for (let after = firstId; ; ) {
      const range = { after, before, limit: checkoutsTogether };
      const page = await reading(deps, (db) => listCheckoutsWithMessages(db, merchant_id, range));
      const ids = page.flatMap(({ checkout_id, is_old }) => (is_old ? [checkout_id] : []));
      if (ids.length > 0) {
        moved += await transaction(deps, ({ db }) =>
          moveFinished(deps, db, { merchant_id, ids, before }),
        );
        report(moved);
      }
      const last = page.at(-1);
      if (!last || page.length < checkoutsTogether) break;
      after = last.checkout_id;
    }
  }
  return await operate(deps, operator, 'database archive end', async () => ({
    ...{ subject_id: null, details: { days, moved }, result: moved },
  }));
}

async function* listMerchantIds(deps: OperatorDeps): AsyncGenerator<string> {
  for (let after = firstId; ; ) {
    const page = await reading(deps, (db) =>
      db
        .selectFrom('merchants')
        .select('id')
        .where('id', '>', after)
        .orderBy('id')
        .limit(merchantsTogether)
        .execute(),
    );
    for (const { id } of page) yield id;
    const last = page.at(-1);
    if (!last || page.length < merchantsTogether) return;
    after = last.id;
  }
}

/**
 * An erasure also locks the checkout, so it finds each message either in its table or in the
 * archive.
 */
async function moveFinished(
  deps: OperatorDeps,
  db: Handle,
  { merchant_id, ids, before }: { merchant_id: string; ids: string[]; before: string },
): Promise<number> {
  await lockCheckouts(db, merchant_id, ids);
  const open = await listOpenReasons(db, merchant_id, ids, await timesOf(deps, db, merchant_id));
  const finished = ids.filter((id) => !open.has(id));
  return await moveToArchive(deps, db, merchant_id, finished, before);
}
