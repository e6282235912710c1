import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import type { DeliveryDeps } from '../callbacks/delivery/deliver-callback.ts';
import { type Config, testGatewayAt } from '../config.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { IntegrationDeps } from '../integrations/create-integration.ts';
import { OperatorError } from '../operators/operate.ts';
import type { Logger } from '../shared/logger.ts';
import type { WorkerDeps } from '../worker.ts';
import type { Context } from './command.ts';
import { type Connection, withMigrated, withSealing } from './connect.ts';
import type { Terminal } from './terminal.ts';

/** What a running sandbox says of itself in its data folder. */
export type SandboxFile = {
  base_url: string;
  gateway_url: string | null;
  gateway_secret_key: string;
  database_url: string;
};

export async function readSandboxFile(config: Config): Promise<SandboxFile> {
  try {
    return JSON.parse(await readFile(join(config.dataDir, 'sandbox.json'), 'utf8'));
  } catch {
    throw new OperatorError(`No running sandbox in ${config.dataDir}. Start one with npm start.`);
  }
}

// What a command does itself it tells by what it prints.
const silent = pino({ level: 'silent' });

/** Whoever moves money by hand hears why it did not move. */
function outspoken(terminal: Terminal): Logger {
  const write = (line: string) => {
    const { msg, err } = JSON.parse(line);
    if (err) terminal.stderr.write(`tranche: ${msg}: ${err.message}\n`);
  };
  return pino({ level: 'warn' }, { write });
}

/** The gateway, for a command that moves money: the configured one, or the running sandbox's. */
export async function withGateway<T>(
  context: Pick<Context, 'env' | 'clock' | 'random' | 'terminal'>,
  work: (deps: Connection & { log: Logger; gateway: Gateway }) => Promise<T>,
): Promise<T> {
  return await withMigrated(context, async (connection) => {
    const { gateway } = await openGateway(connection.config);
    return await work({ ...connection, log: outspoken(context.terminal), gateway });
  });
}

/** Everything that delivering callbacks needs, for a command that does so itself. */
export async function withDelivery<T>(
  context: Context,
  work: (deps: Connection & IntegrationDeps & DeliveryDeps) => Promise<T>,
): Promise<T> {
  return await withSealing(context, async (connection) => {
    const { createCallbackSender } = await import('../callbacks/delivery/send-callback.ts');
    const { attemptCommits } = await import('../callbacks/delivery/attempt-commits.ts');
    const { clock, config } = connection;
    const sender = createCallbackSender({ clock, allowed: config.callbackAllow });
    try {
      const deps = { ...connection, log: silent };
      return await work({ ...deps, ...attemptCommits(deps), sendCallback: sender.send });
    } finally {
      await sender.close();
    }
  });
}

/** Both, for a command that does a sandbox's work itself. */
export async function withWorker<T>(
  context: Context,
  work: (deps: Connection & IntegrationDeps & WorkerDeps) => Promise<T>,
): Promise<T> {
  return await withDelivery(context, async (deps) => {
    const { alertWebhookUrl } = deps.config;
    return await work({ ...deps, ...(await openGateway(deps.config)), alertWebhookUrl });
  });
}

async function openGateway(config: Config): Promise<{ gateway: Gateway; baseUrl: string }> {
  const { createStripeGateway } = await import('../gateway/stripe.ts');
  if (config.gateway) {
    return { gateway: createStripeGateway(config.gateway), baseUrl: config.baseUrl };
  }
  const sandbox = await readSandboxFile(config);
  // Another gateway would say of every payment that there is none, and that would be believed.
  if (config.databaseUrl !== null && !isSame(config.databaseUrl, sandbox.database_url)) {
    throw new OperatorError(
      `DATABASE_URL is not the database of the sandbox in ${config.dataDir}. Set TEST_GATEWAY_URL, STRIPE_SECRET_KEY and STRIPE_PUBLISHABLE_KEY as for its service.`,
    );
  }
  const gateway = createStripeGateway({
    environment: config.environment,
    secretKey: sandbox.gateway_secret_key,
    publicKey: '',
    ...(sandbox.gateway_url !== null && testGatewayAt(sandbox.gateway_url)),
  });
  // A shopper whose bank asks is sent back to the running sandbox, whatever our own settings say.
  return { gateway, baseUrl: sandbox.base_url };
}

function isSame(one: string, other: string): boolean {
  const placeOf = (url: string) => `${new URL(url).host}${new URL(url).pathname}`;
  return placeOf(one) === placeOf(other);
}
