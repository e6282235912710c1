import { type Credentials, liftLimits, tranche } from '../support/sandbox-process.ts';

/** Three merchants whose integrations may do as much as they like. */
export async function createMerchants(
  env: NodeJS.ProcessEnv,
): Promise<{ id: string; caller: Credentials }[]> {
  const merchants: { id: string; caller: Credentials }[] = [];
  const rules = '[{"from_amount":10000,"to_amount":2000000,"terms":[1,3,6]}]';
  for (const name of ['Bean There', 'Loom and Thread', 'Corner Books']) {
    const create = ['merchants', 'create', '--name', name, '--rules', rules];
    const { id } = await tranche(create, env);
    const issue = ['integrations', 'create', '--merchant', id, '--refunds', 'auto'];
    const caller: Credentials = await tranche(issue, env);
    await liftLimits(env.DATABASE_URL ?? '', caller.id);
    const limit = ['--endpoint', 'POST /api/refunds', '--limit', '1000000', '--window', '1'];
    await tranche(['integrations', 'limit', caller.id, ...limit], env);
    merchants.push({ id, caller });
  }
  return merchants;
}
