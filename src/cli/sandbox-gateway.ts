import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { createMoneyGuard, type MoneyGuard } from '#checks/reconciliation/money-guard.ts';
import type { Config } from '#config.ts';
import { atTestGateway, capabilitiesOf, settingsToFind } from '#gateway/adapters/read-settings.ts';
import type { Capabilities } from '#gateway/capabilities.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { GatewayMissing, type Gateways } from '#gateway/gateways.ts';
import { guardGateways } from '#gateway/guard-gateway.ts';
import { type NamedSettings, type Protocol, protocols } from '#gateway/settings.ts';
import type { IntegrationDeps } from '#merchants/integrations/create-integration.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import { serversOf } from '#platform/database/servers.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { DeliveryDeps } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { WorkerDeps } from '#worker.ts';
import type { Context, Surroundings } from './command.ts';
import { type Connection, withMigrated, withSealing } from './connect.ts';
import type { Terminal } from './terminal.ts';

/** The part of DATA_DIR/sandbox.json that commands read. */
export type SandboxFile = {
  base_url: string;
  shop_url: string | null;
  mailbox_url: string | null;
  merchant: { id: string };
  console_url?: string;
  merchant_console_url?: string | null;
  gateway_url: string | null;
  gateway_secret_key: string;
  gateways: {
    name: GatewayName;
    protocol: Protocol;
    url: string | null;
    secret_key: string;
    /** Present if the gateway takes no new checkouts. */
    is_closed?: boolean;
  }[];
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

// A command reports on the terminal, not in a log.
const silent = pino({ level: 'silent' });

/** Prints logged errors on stderr, so that the operator learns why money did not move. */
function errorsOnly(terminal: Terminal): Logger {
  const write = (line: string) => {
    const { msg, err } = JSON.parse(line);
    if (err) terminal.warn(`tranche: ${msg}: ${err.message}`);
  };
  return pino({ level: 'warn' }, { write });
}

/** Opens the configured gateways, or the running sandbox's, for a command that moves money. */
export async function withGateway<T>(
  context: Surroundings & Pick<Context, 'terminal'>,
  work: (
    deps: Connection & { log: Logger; gateways: Gateways; money: MoneyGuard; tracer: null },
  ) => Promise<T>,
  options: { whileStopped?: boolean } = {},
): Promise<T> {
  return await withMigrated(context, async (connection) => {
    const deps = { ...connection, log: errorsOnly(context.terminal) };
    const { gateways, money } = await openGuarded(deps, options);
    return await work({ ...deps, gateways, money, tracer: null });
  });
}

/** Opens what a command needs to send payouts to the bank and to decrypt account numbers. */
export async function withBankRun<T>(
  context: Surroundings & Pick<Context, 'terminal'>,
  work: (deps: Connection & IntegrationDeps & { money: MoneyGuard }) => Promise<T>,
): Promise<T> {
  return await withSealing(context, async (connection) => {
    const log = errorsOnly(context.terminal);
    const { money } = await openGuarded({ ...connection, log }, { whileStopped: true });
    return await work({ ...connection, money });
  });
}

/** Opens what a command needs to deliver callbacks itself. */
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

/** Opens what a command needs to run a sandbox's due work itself. */
export async function withWorker<T>(
  context: Context,
  work: (deps: Connection & IntegrationDeps & WorkerDeps) => Promise<T>,
): Promise<T> {
  return await withDelivery(context, async (deps) => {
    const { openMailTransport } = await import('#purchases/messages/sending/open-transport.ts');
    const { createRateLimits, memoryRateLimitStore } = await import(
      '#platform/http/rate-limits.ts'
    );
    // This process counts for itself: the counts of a process that serves shoppers may be only in
    // that process.
    const rateLimits = createRateLimits(memoryRateLimitStore(deps.clock));
    const mail = openMailTransport(deps.config, deps);
    try {
      return await work({ ...deps, ...(await openGuarded(deps)), mail, rateLimits });
    } finally {
      await mail?.close();
    }
  });
}

/**
 * Refuses while money is stopped (decision 0097), unless the command handles the stop itself. If a
 * gateway does not answer, it is asked again before money moves.
 */
async function openGuarded(
  deps: Connection & { log: Logger },
  { whileStopped = false }: { whileStopped?: boolean } = {},
): Promise<{ gateways: Gateways; money: MoneyGuard; baseUrl: string }> {
  const { openGateways } = await import('#gateway/adapters/create-gateway.ts');
  const { settings, baseUrl } = await findGateways(deps.config);
  const gateways = openGateways(settings, deps);
  const { environment } = deps.config;
  const money = createMoneyGuard({ ...deps, gateways, environment, endAccess: endAllAccess });
  if (!whileStopped) {
    const reason = (await money.problem().catch(() => null)) ?? (await money.stopReason());
    if (reason !== null) throw new OperatorError(reason);
  }
  return { gateways: guardGateways(gateways, money), money, baseUrl };
}

/** The gateways that the service uses, without calling them. The first is the default. */
export async function findGateways(
  config: Config,
): Promise<{ settings: NamedSettings[]; baseUrl: string }> {
  if (config.gateways) {
    if (config.gateways.some(({ secretKey }) => secretKey === '')) {
      throw new OperatorError(
        "The gateway's settings are missing. Run this with the service's whole environment.",
      );
    }
    return { settings: config.gateways, baseUrl: config.baseUrl };
  }
  const sandbox = await readSandboxFile(config);
  // A different gateway does not know our payments, so it must not be asked about them.
  if (config.databaseUrl !== null && !isSame(config.databaseUrl, sandbox.database_url)) {
    const names = inWords(settingsToFind(sandbox.gateways[0]?.protocol ?? protocols[0]));
    throw new OperatorError(
      `DATABASE_URL is not the database of the sandbox in ${config.dataDir}. Set ${names} to the values that its service has.`,
    );
  }
  const settings = sandbox.gateways.map(({ name, protocol, url, secret_key, is_closed }) => ({
    ...{ name, protocol, environment: config.environment, secretKey: secret_key, publicKey: '' },
    ...(is_closed && { isClosed: true }),
    ...(url !== null && atTestGateway(protocol, url)),
  }));
  // After a challenge the bank must send the shopper back to the running sandbox, not to BASE_URL.
  return { settings, baseUrl: sandbox.base_url };
}

/** The capabilities of the gateways that the service uses, without calling them. */
export async function findCapabilities(
  config: Config,
): Promise<{ of(name: GatewayName): { capabilities: Capabilities } }> {
  const { settings } = await findGateways(config);
  return {
    of(name) {
      const found = settings.find((one) => one.name === name);
      if (!found) throw new GatewayMissing(name);
      return { capabilities: capabilitiesOf(found) };
    },
  };
}

/** The gateway that an operator names, or the default. */
export async function findGatewayNamed(
  config: Config,
  text: string | undefined,
): Promise<NamedSettings> {
  const { settings } = await findGateways(config);
  const found = text === undefined ? settings[0] : settings.find(({ name }) => name === text);
  if (found) return found;
  const names = settings.map(({ name }) => name).join(', ');
  throw new OperatorError(`There is no gateway ${text}. The settings name ${names}.`);
}

const inWords = (names: string[]) => `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

function isSame(one: string, other: string): boolean {
  const placesOf = (url: string) =>
    (serversOf(url) ?? []).map((server) => new URL(server)).map((it) => it.host + it.pathname);
  return placesOf(one).some((place) => placesOf(other).includes(place));
}
