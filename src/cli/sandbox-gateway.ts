import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { createMoneyGuard, type MoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { testGatewayAt } from '#config/gateway.ts';
import type { Config } from '#config.ts';
import type { Gateway } from '#gateway/gateway.ts';
import { guardGateway } from '#gateway/guard-gateway.ts';
import { limitGateway } from '#gateway/limit-gateway.ts';
import { limitsFor, type StripeSettings } from '#gateway/settings.ts';
import type { IntegrationDeps } from '#merchants/integrations/create-integration.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import { serversOf } from '#platform/database/servers.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { DeliveryDeps } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { WorkerDeps } from '#worker.ts';
import type { Context } from './command.ts';
import { type Connection, withMigrated, withSealing } from './connect.ts';
import type { Terminal } from './terminal.ts';

/** The part of DATA_DIR/sandbox.json that commands read. */
export type SandboxFile = {
  base_url: string;
  console_url?: string;
  gateway_url: string | null;
  gateway_secret_key: string;
  database_url: string;
};

export async function readSandboxFile(config: Config): Promise<SandboxFile> {
  try {
    return JSON.parse(await readFile(join(config.dataDir, 'sandbox.json'), 'utf8'));
  } catch {
    throw new OperatorError(
      `No sandbox is running in ${config.dataDir}. Start one with npm start.`,
    );
  }
}

// A command reports by what it prints, not in a log.
const silent = pino({ level: 'silent' });

/** Prints logged errors on stderr, so that the operator learns why money did not move. */
function errorsOnly(terminal: Terminal): Logger {
  const write = (line: string) => {
    const { msg, err } = JSON.parse(line);
    if (err) terminal.warn(`tranche: ${msg}: ${err.message}`);
  };
  return pino({ level: 'warn' }, { write });
}

/** For a command that moves money: the configured gateway, or the running sandbox's. */
export async function withGateway<T>(
  context: Pick<Context, 'env' | 'clock' | 'random' | 'terminal'>,
  work: (
    deps: Connection & { log: Logger; gateway: Gateway; money: MoneyGuard; tracer: null },
  ) => Promise<T>,
  options: { whileStopped?: boolean } = {},
): Promise<T> {
  return await withMigrated(context, async (connection) => {
    const deps = { ...connection, log: errorsOnly(context.terminal) };
    const { gateway, money } = await openGateway(deps, options);
    return await work({ ...deps, gateway, money, tracer: null });
  });
}

/** For a command that orders money from the bank, and opens account numbers. */
export async function withBankRun<T>(
  context: Pick<Context, 'env' | 'clock' | 'random' | 'terminal'>,
  work: (deps: Connection & IntegrationDeps & { money: MoneyGuard }) => Promise<T>,
): Promise<T> {
  return await withSealing(context, async (connection) => {
    const log = errorsOnly(context.terminal);
    const { money } = await openGateway({ ...connection, log }, { whileStopped: true });
    return await work({ ...connection, money });
  });
}

/** For a command that delivers callbacks itself. */
export async function withDelivery<T>(
  context: Context,
  work: (deps: Connection & IntegrationDeps & DeliveryDeps) => Promise<T>,
): Promise<T> {
  return await withSealing(context, async (connection) => {
    const { createCallbackSender } = await import('#purchases/callbacks/delivery/send-callback.ts');
    const { attemptCommits } = await import('#purchases/callbacks/delivery/attempt-commits.ts');
    const { clock, config } = connection;
    const sender = createCallbackSender({ clock, allowed: config.callbackAllow });
    try {
      const deps = { ...connection, log: silent, tracer: null };
      return await work({ ...deps, ...attemptCommits(deps), sendCallback: sender.send });
    } finally {
      await sender.close();
    }
  });
}

/** For a command that runs a sandbox's due work itself. */
export async function withWorker<T>(
  context: Context,
  work: (deps: Connection & IntegrationDeps & WorkerDeps) => Promise<T>,
): Promise<T> {
  return await withDelivery(context, async (deps) => {
    const { openMailTransport } = await import('#purchases/messages/sending/open-transport.ts');
    const {
      alertWebhookUrl,
      alertWebhookSecret,
      callbackRetentionDays,
      retentionDays,
      console,
      secondPersonHours,
    } = deps.config;
    const settings = {
      alertWebhookUrl,
      alertWebhookSecret,
      callbackRetentionDays,
      retentionDays,
      console,
      secondPersonHours,
    };
    const mail = openMailTransport(deps.config, deps);
    try {
      return await work({ ...deps, ...(await openGateway(deps)), ...settings, mail });
    } finally {
      await mail?.close();
    }
  });
}

type GuardedGateway = { gateway: Gateway; money: MoneyGuard; baseUrl: string };

/**
 * Refuses while money is stopped (decision 0097), unless the command handles the stop itself. A
 * gateway that does not answer is asked again before money moves.
 */
async function openGateway(
  deps: Connection & { log: Logger },
  { whileStopped = false }: { whileStopped?: boolean } = {},
): Promise<GuardedGateway> {
  const { createStripeGateway } = await import('#gateway/stripe/stripe.ts');
  const { settings, baseUrl } = await findGateway(deps.config);
  const gateway = limitGateway(createStripeGateway(settings), deps, limitsFor(settings));
  const { environment } = deps.config;
  const money = createMoneyGuard({ ...deps, gateway, environment, endAccess: endAllAccess });
  if (!whileStopped) {
    await money.problem().catch(() => {});
    const reason = await money.stopReason();
    if (reason !== null) throw new OperatorError(reason);
  }
  return { gateway: guardGateway(gateway, money.problem), money, baseUrl };
}

async function findGateway(config: Config): Promise<{ settings: StripeSettings; baseUrl: string }> {
  if (config.gateway) return { settings: config.gateway, baseUrl: config.baseUrl };
  const sandbox = await readSandboxFile(config);
  // A different gateway knows none of our payments, and we would believe its answers.
  if (config.databaseUrl !== null && !isSame(config.databaseUrl, sandbox.database_url)) {
    throw new OperatorError(
      `DATABASE_URL is not the database of the sandbox in ${config.dataDir}. Set TEST_GATEWAY_URL, STRIPE_SECRET_KEY and STRIPE_PUBLISHABLE_KEY to the values that its service has.`,
    );
  }
  const settings = {
    environment: config.environment,
    secretKey: sandbox.gateway_secret_key,
    publicKey: '',
    ...(sandbox.gateway_url !== null && testGatewayAt(sandbox.gateway_url)),
  };
  // After a challenge the bank must send the shopper back to the running sandbox, not to BASE_URL.
  return { settings, baseUrl: sandbox.base_url };
}

function isSame(one: string, other: string): boolean {
  const placesOf = (url: string) =>
    (serversOf(url) ?? []).map((server) => new URL(server)).map((it) => it.host + it.pathname);
  return placesOf(one).some((place) => placesOf(other).includes(place));
}
