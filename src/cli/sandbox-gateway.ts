import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, testGatewayAt } from '../config.ts';
import type { StripeSettings } from '../gateway/settings.ts';
import type { IntegrationDeps } from '../integrations/create-integration.ts';
import { OperatorError } from '../operators/operate.ts';
import type { PaymentDeps } from '../payments/start-payment.ts';
import type { Context } from './command.ts';
import { type Connection, withSealing } from './connect.ts';

/** What a running sandbox says of itself in its data folder. */
export type SandboxFile = {
  base_url: string;
  gateway_url: string | null;
  gateway_secret_key: string;
};

export async function readSandboxFile(config: Config): Promise<SandboxFile> {
  try {
    return JSON.parse(await readFile(join(config.dataDir, 'sandbox.json'), 'utf8'));
  } catch {
    throw new OperatorError(`No running sandbox in ${config.dataDir}. Start one with npm start.`);
  }
}

/** Everything that payments need, for a command that does a sandbox's work itself. */
export async function withGateway<T>(
  context: Context,
  work: (deps: Connection & IntegrationDeps & PaymentDeps) => Promise<T>,
): Promise<T> {
  return await withSealing(context, async (connection) => {
    const { pino } = await import('pino');
    const { createStripeGateway } = await import('../gateway/stripe.ts');
    const { config } = connection;
    const gateway = createStripeGateway(config.gateway ?? (await sandboxGateway(config)));
    const log = pino({ level: 'silent' });
    // A shopper whose bank asks is sent back to the running sandbox, whatever our own settings say.
    const baseUrl = config.gateway ? config.baseUrl : (await readSandboxFile(config)).base_url;
    return await work({ ...connection, gateway, log, baseUrl });
  });
}

async function sandboxGateway(config: Config): Promise<StripeSettings> {
  const { gateway_url, gateway_secret_key } = await readSandboxFile(config);
  return {
    environment: config.environment,
    secretKey: gateway_secret_key,
    publicKey: '',
    ...(gateway_url !== null && testGatewayAt(gateway_url)),
  };
}
