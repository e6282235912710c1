import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DeliveryDeps } from '../callbacks/deliver-callback.ts';
import { type Config, testGatewayAt } from '../config.ts';
import type { StripeSettings } from '../gateway/settings.ts';
import type { IntegrationDeps } from '../integrations/create-integration.ts';
import { OperatorError } from '../operators/operate.ts';
import type { WorkerDeps } from '../worker.ts';
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

/** Everything that delivering callbacks needs, for a command that does so itself. */
export async function withDelivery<T>(
  context: Context,
  work: (deps: Connection & IntegrationDeps & DeliveryDeps) => Promise<T>,
): Promise<T> {
  return await withSealing(context, async (connection) => {
    const { pino } = await import('pino');
    const { createCallbackSender } = await import('../callbacks/send-callback.ts');
    const { attemptCommits } = await import('../callbacks/attempt-commits.ts');
    const { clock, config } = connection;
    const sender = createCallbackSender({ clock, allowed: config.callbackAllow });
    try {
      const log = pino({ level: 'silent' });
      const deps = { ...connection, log };
      return await work({ ...deps, ...attemptCommits(deps), sendCallback: sender.send });
    } finally {
      await sender.close();
    }
  });
}

/** The same with the gateway, for a command that does a sandbox's work itself. */
export async function withGateway<T>(
  context: Context,
  work: (deps: Connection & IntegrationDeps & WorkerDeps) => Promise<T>,
): Promise<T> {
  return await withDelivery(context, async (deps) => {
    const { createStripeGateway } = await import('../gateway/stripe.ts');
    const { config } = deps;
    const gateway = createStripeGateway(config.gateway ?? (await sandboxGateway(config)));
    // A shopper whose bank asks is sent back to the running sandbox, whatever our own settings say.
    const baseUrl = config.gateway ? config.baseUrl : (await readSandboxFile(config)).base_url;
    return await work({ ...deps, gateway, baseUrl, alertWebhookUrl: config.alertWebhookUrl });
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
