import {
  createIntegration,
  type IntegrationDeps,
  type IssuedCredentials,
} from '#merchants/integrations/create-integration.ts';
import { setLimit } from '#merchants/integrations/set-limit.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type InviteDeps, invitePerson } from '#operating/people/invite-person.ts';
import { findPersonByEmail } from '#operating/people/person.sql.ts';
import { endpointLimits } from '#platform/http/rate-limits.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import type { NewAccountWait } from '#purchases/payouts/payout.ts';
import {
  confirmAccount,
  proposeAccount,
  readPayee,
  setStatementAddress,
} from '#purchases/payouts/set-bank-account.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { listTerms } from '#record/ledger/settlement.sql.ts';

/** The two operators of the story, as names at the command line. */
export const [firstOperator, secondOperator] = ['lindiwe', 'marius'] as const;

export type PrepareDeps = IntegrationDeps &
  InviteDeps &
  MerchantMailDeps &
  NewAccountWait & { log: Logger };

/** Gives the merchant credentials for the story, and everything that it needs to be paid out. */
export async function prepareMerchant(
  deps: PrepareDeps,
  merchant: Merchant,
): Promise<IssuedCredentials> {
  await makePayable(deps, merchant);
  await inviteColleagues(deps, merchant);
  const credentials = await createIntegration(deps, firstOperator, {
    merchant_id: merchant.id,
    refund_mode: 'manual',
  });
  // All orders of a day come at once, which the contract's limits would refuse.
  for (const endpoint of ['POST /api/checkouts', 'POST /api/refunds'] as const) {
    const { window_seconds } = endpointLimits[endpoint];
    const limit = { endpoint, max_requests: 50, window_seconds, mayRaiseLimits: true };
    await setLimit(deps, firstOperator, { id: credentials.id, ...limit });
  }
  return credentials;
}

async function makePayable(deps: PrepareDeps, { id, name }: Merchant): Promise<void> {
  if ((await listTerms(deps.database.db, id)).length === 0) {
    await setTerms(deps, firstOperator, id, {
      basis_points: 535,
      fixed: 480,
      vat_basis_points: 1_500,
      from_on: null,
      funding: 'whole',
      refund_fee: 'kept',
      reserve_basis_points: 0,
      reserve_days: 0,
    });
  }
  const { account } = await readPayee(deps, id);
  if (account !== null) return;
  const account_number = '62001234567';
  const wanted = { holder: name, bank: 'Standard Bank', branch_code: '051001', account_number };
  const { number } = await proposeAccount(deps, firstOperator, id, wanted);
  await confirmAccount(deps, secondOperator, id, { number, account_number });
  await setStatementAddress(deps, firstOperator, id, 'finance@karoo-outfitters.example');
}

const colleagues = [
  {
    email: 'lindiwe@example.com',
    name: 'Lindiwe Maseko',
    roles: ['refunds', 'support'],
    own: false,
  },
  { email: 'marius@example.com', name: 'Marius Steyn', roles: ['finance'], own: false },
  { email: 'owner@karoo-outfitters.example', name: 'Nadia Karriem', roles: ['viewer'], own: true },
];

/** People are invited only once, because a new invitation would end their access. */
async function inviteColleagues(deps: PrepareDeps, merchant: Merchant): Promise<void> {
  for (const { own, ...person } of colleagues) {
    if (await findPersonByEmail(deps.database.db, person.email)) continue;
    const merchant_ids = own ? [merchant.id] : null;
    await invitePerson(deps, firstOperator, { ...person, merchant_ids });
  }
}
