import { rememberedMilliseconds } from '#merchants/integrations/callers.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { setClock } from '#merchants/set-clock.ts';
import { findNextDue } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findNewDisputes } from '#purchases/disputes/check-disputes.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import type { MerchantWork, WorkerDeps } from '#worker.ts';

export type ClockDeps = WorkerDeps &
  OperatorDeps & {
    environment: Environment;
    /** The due work that follows a merchant's clock. */
    merchantWork: readonly MerchantWork[];
  };

/**
 * The clock waits while another process has claimed what is due. All pauses together last longer
 * than any lease, because that process may have died.
 */
const pauseMilliseconds = 50;
const pausesMax = 2_400;

/**
 * Moves a sandbox merchant's clock forward. Work that falls due on the way is done in order and at
 * its own due time, before the clock moves on (decision 0017).
 */
export async function advanceClock(
  deps: ClockDeps,
  operator: string,
  merchant_id: string,
  wanted: { by: Temporal.Duration } | 'next event',
  progress: (now: Timestamp) => void = () => {},
): Promise<{ merchant_id: string; now: Timestamp; next_event_at: Timestamp | null }> {
  if (deps.environment === 'production') {
    throw new OperatorError('Only a sandbox can move a clock. Production runs on real time.');
  }
  const before = await mustFind(deps, merchant_id);
  const next = await findNextEvent(deps, merchant_id);
  if (wanted === 'next event' && next === null) {
    throw new OperatorError('Nothing is scheduled for this merchant, so there is no next event.');
  }
  const target =
    wanted === 'next event'
      ? Temporal.Instant.from(next as Timestamp)
      : before.now().add(wanted.by);
  await operate(deps, operator, 'clock advance', async () => ({
    subject_id: merchant_id,
    merchant_id,
    details: { to: timestamp(target) },
    result: null,
  }));

  const merchant = await moveClock(deps, merchant_id, target, progress);
  return {
    merchant_id,
    now: timestamp(merchant.now()),
    next_event_at: await findNextEvent(deps, merchant_id),
  };
}

/**
 * Moves the clock and does what falls due on the way. When this function returns, every process has
 * the new time.
 */
export async function moveClock(
  deps: ClockDeps,
  merchant_id: string,
  target: Temporal.Instant,
  progress: (now: Timestamp) => void = () => {},
): Promise<Merchant> {
  let merchant: Merchant | null = null;
  let hasLooked = false;
  for (let pauses = 0; ; ) {
    const due = await findNextEvent(deps, merchant_id);
    const isOnTheWay = due !== null && Temporal.Instant.compare(due, target) <= 0;
    const to = isOnTheWay ? due : timestamp(target);
    if (merchant && !hasLooked && isJump(merchant, to)) {
      hasLooked = true;
      await lookForDisputes(deps);
      // A new dispute may itself be due.
      continue;
    }
    const moved = await transaction(deps, ({ db }) => setClock(deps, db, merchant_id, to));
    merchant = moved;
    hasLooked = false;
    progress(timestamp(moved.now()));
    if (!isOnTheWay) break;
    const counts = await Promise.all(deps.merchantWork.map((work) => work.runFor(deps, moved)));
    const isClaimedElsewhere = counts.every((count) => count === 0);
    pauses = isClaimedElsewhere ? pauses + 1 : 0;
    if (pauses > pausesMax) {
      throw new OperatorError(
        `A worker claimed what was due at ${due} and has not finished it. The clock stays there.`,
      );
    }
    if (isClaimedElsewhere) await deps.clock.sleep(pauseMilliseconds);
  }
  await lookForDisputes(deps);
  // Other processes cache the merchant for this long. Afterwards the caller can rely on the new
  // time in every request.
  await deps.clock.sleep(rememberedMilliseconds);
  return merchant;
}

/** Whether the clock moves by an hour or more in one step. */
const isJump = (merchant: Merchant, to: Timestamp) => merchant.now().until(to).total('hours') >= 1;

/**
 * Looks for new disputes on the merchant's clock. The worker polls on the real one, which stands
 * still while the merchant's days pass.
 */
async function lookForDisputes(deps: ClockDeps): Promise<void> {
  await findNewDisputes(deps).catch((error) =>
    deps.log.warn({ err: error }, 'could not look for new disputes'),
  );
}

export async function findNextEvent(
  deps: Pick<ClockDeps, 'database' | 'merchantWork'>,
  merchant_id: string,
): Promise<Timestamp | null> {
  const dues = await Promise.all(
    deps.merchantWork.map((work) => findNextDue(deps.database.db, work.due, merchant_id)),
  );
  return dues.filter((due) => due !== null).sort()[0] ?? null;
}

async function mustFind(deps: ClockDeps, merchant_id: string): Promise<Merchant> {
  const merchant = isUuid(merchant_id)
    ? await findMerchant(deps.database.db, deps.clock, merchant_id)
    : null;
  if (!merchant) throw new OperatorError(`There is no merchant ${merchant_id}.`);
  return merchant;
}
