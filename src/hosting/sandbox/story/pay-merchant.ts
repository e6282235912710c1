import { listPayoutsPage } from '#operating/operations/payouts.sql.ts';
import type { BankFileDeps } from '#purchases/payouts/bank-file.ts';
import type { NewAccountWait, Payout, PayoutStatus } from '#purchases/payouts/payout.ts';
import { approvePayout, exportPayouts, payPayout } from '#purchases/payouts/review-payout.ts';
import type { Story } from './play-story.ts';
import { firstOperator, secondOperator } from './prepare-merchant.ts';

export type PayMerchantDeps = Parameters<typeof payPayout>[0] & NewAccountWait & BankFileDeps;

/** Two operators approve the payouts of a week, and the bank pays them. */
export async function payMerchant(story: Story): Promise<void> {
  const { deps } = story;
  for (const { id } of await list(story, 'draft')) {
    await approvePayout(deps, firstOperator, id);
    await approvePayout(deps, secondOperator, id);
  }
  await exportPayouts(deps, secondOperator, 'csv');
  for (const { id, reference } of await list(story, 'exported')) {
    await payPayout(deps, secondOperator, id, `FT${reference.replaceAll(/\D/g, '')}`);
  }
}

/**
 * One operator approves the draft payouts except the two newest. They then wait for a second
 * approval.
 */
export async function approveFirst(story: Story): Promise<void> {
  for (const { id } of (await list(story, 'draft')).slice(2)) {
    await approvePayout(story.deps, firstOperator, id);
  }
}

async function list({ deps, merchant }: Story, status: PayoutStatus): Promise<Payout[]> {
  const page = { after: null, limit: 100 };
  const { rows } = await listPayoutsPage(
    deps.database.db,
    { merchant_ids: [merchant.id] },
    status,
    page,
  );
  return rows;
}
