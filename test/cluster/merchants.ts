import type { Credentials } from '../support/http.ts';
import { liftLimits, tranche } from '../support/sandbox-process.ts';
import { type Paid, startLoad, type Target } from './load.ts';
import { eventually } from './servers.ts';

export type TestMerchant = { id: string; caller: Credentials };

const rules = '[{"from_amount":10000,"to_amount":2000000,"terms":[1,3,6]}]';

/** Creates a merchant whose integration has no limits. */
export async function createMerchant(
  env: NodeJS.ProcessEnv,
  name: string,
  {
    fits = async () => true,
    refunds = 'auto',
  }: {
    /** Integrations are created until one fits. */
    fits?: (merchant: string, integration: string) => Promise<boolean>;
    refunds?: 'auto' | 'manual';
  } = {},
): Promise<TestMerchant> {
  const create = ['merchants', 'create', '--name', name, '--rules', rules];
  const { id } = await tranche(create, env);
  const issue = ['integrations', 'create', '--merchant', id, '--refunds', refunds];
  let caller: Credentials = await tranche(issue, env);
  while (!(await fits(id, caller.id))) caller = await tranche(issue, env);
  await liftLimits(env.DATABASE_URL ?? '', caller.id);
  for (const endpoint of ['POST /api/refunds', 'GET /api/refunds']) {
    const limit = ['--endpoint', endpoint, '--limit', '1000000', '--window', '1'];
    await tranche(['integrations', 'limit', caller.id, ...limit], env);
  }
  return { id, caller };
}

export async function createMerchants(env: NodeJS.ProcessEnv): Promise<TestMerchant[]> {
  const merchants: TestMerchant[] = [];
  for (const name of ['Bean There', 'Loom and Thread', 'Corner Books']) {
    merchants.push(await createMerchant(env, name));
  }
  return merchants;
}

/** Pays checkouts of each merchant, and moves its clock ahead so that they can be refunded. */
export async function payCheckouts(
  env: NodeJS.ProcessEnv,
  merchants: TestMerchant[],
  target: Target,
): Promise<Paid[]> {
  const paid: Paid[] = [];
  const refunds = { rate: 0, of: [] };
  for (const { id, caller } of merchants) {
    const before = startLoad({ ...target, callers: [caller], rate: 0, shoppers: 4, refunds });
    await eventually('some payments', () => before.paid.size >= 4);
    await before.stop();
    for (const checkout of before.paid) paid.push({ id: checkout, caller });
    // Automatic refunds are possible from ten o'clock on the next day.
    await tranche(['clock', 'advance', '--merchant', id, '--by', '2d'], env);
  }
  return paid;
}
