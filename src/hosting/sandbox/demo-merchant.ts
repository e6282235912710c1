import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { changePage } from '#merchants/change-page.ts';
import { createMerchant } from '#merchants/create-merchant.ts';
import { createCallers } from '#merchants/integrations/callers.ts';
import {
  createIntegration,
  type IntegrationDeps,
  type IssuedCredentials,
} from '#merchants/integrations/create-integration.ts';
import { findMerchantRow } from '#merchants/merchant.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { writePrivately } from '#platform/shared/files.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';

/** A merchant for trying the API, the same at every start of a sandbox. */
export type Demo = {
  merchant: { id: string; name: string };
  integration: IssuedCredentials;
};

const operator = 'sandbox';
const demoRules = [
  { from_amount: 10_000, to_amount: 99_999, terms: [1, 3] },
  { from_amount: 100_000, to_amount: 2_000_000, terms: [1, 3, 6, 12] },
];

/** The demo shop pays 4,95 % and R 2,50 for each order, plus VAT. */
export const demoTerms = {
  from_on: null,
  funding: 'whole',
  basis_points: 495,
  fixed: 250,
  vat_basis_points: 1_500,
  refund_fee: 'kept',
  reserve_basis_points: 0,
  reserve_days: 0,
} as const;

/** Pages, mails and receipts show this profile. */
const demoProfile = {
  contact: 'help@karoo-outfitters.example',
  address: '12 Long Street\nCape Town\n8001',
  vat_number: '4123456789',
};
const readLogo = () => readFile(new URL('demo-logo.png', import.meta.url));

type DemoDeps = IntegrationDeps & Parameters<typeof createMerchant>[0];

/**
 * The credentials are kept in the data folder, readable by the owner only. If they were rotated,
 * the same merchant gets new ones.
 */
export async function ensureDemo(deps: DemoDeps, dataDir: string): Promise<Demo> {
  const file = join(dataDir, 'demo.json');
  const kept = await readDemo(file);
  if (kept && (await isInForce(deps, kept))) return kept;
  const merchant =
    (kept && (await reading(deps, (db) => findMerchantRow(db, kept.merchant.id)))) ??
    (await createDemoMerchant(deps));
  const integration = await createIntegration(deps, operator, {
    merchant_id: merchant.id,
    refund_mode: 'manual',
  });
  const demo = { merchant: { id: merchant.id, name: merchant.name }, integration };
  await writePrivately(file, demo);
  return demo;
}

async function createDemoMerchant(deps: DemoDeps): Promise<Demo['merchant']> {
  const merchant = await createMerchant(deps, operator, {
    name: 'Karoo Outfitters',
    territory: 'ZA',
    rules: demoRules,
  });
  await changePage(deps, operator, { id: merchant.id, ...demoProfile, logo: await readLogo() });
  await setTerms(deps, operator, merchant.id, demoTerms);
  return merchant;
}

async function readDemo(file: string): Promise<Demo | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch {
    return null;
  }
}

/**
 * Returns false if a credential was revoked or rotated, or if the credentials belong to another
 * database.
 */
async function isInForce(deps: IntegrationDeps, { integration }: Demo): Promise<boolean> {
  const caller = await createCallers(deps).recognise(integration.client_secret);
  return (
    caller?.id === integration.id &&
    caller.signing_keys.some(({ key }) => key === integration.signing_key)
  );
}
