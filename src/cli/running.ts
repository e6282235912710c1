import type { Config } from '#config.ts';
import { isAlive } from '#hosting/embedded-postgres/server-processes.ts';
import { type Clock, systemClock } from '#platform/shared/clock.ts';
import { freePorts } from '#platform/shared/free-ports.ts';

/**
 * npm forwards the Ctrl-C that the terminal has already sent us, which must not count as a second
 * one.
 */
const echoMilliseconds = 500;

/** Resolves at the first Ctrl-C or SIGTERM. A second one ends the process at once. */
export function untilStopped(clock: Clock = systemClock): Promise<void> {
  return new Promise((resolve) => {
    let firstAt: number | null = null;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        firstAt ??= clock.monotonic();
        if (clock.monotonic() - firstAt > echoMilliseconds) process.exit(130);
        resolve();
      });
    }
  });
}

const lookMilliseconds = 500;

/** Resolves when one of these processes has ended. */
export async function untilOneEnds(pids: number[], clock: Clock = systemClock): Promise<void> {
  while (pids.every(isAlive)) await clock.sleep(lookMilliseconds);
}

/**
 * Replaces each port 0 with a free port. The port is chosen here because our answers contain our
 * URL.
 */
export async function settlePort(config: Config, env: NodeJS.ProcessEnv): Promise<Config> {
  const settled = { ...config };
  const free = await freePorts(5);
  const [port = 0, consolePort = 0, mailboxPort = 0, merchantPort = 0, shopPort = 0] = free;
  if (config.port === 0) {
    settled.port = port;
    if (!env.BASE_URL) settled.baseUrl = `http://localhost:${port}`;
  }
  if (config.console.port === 0) {
    const url = env.CONSOLE_URL ? config.console.url : `http://localhost:${consolePort}`;
    settled.console = { ...config.console, port: consolePort, url };
  }
  if (config.merchantConsole?.port === 0) {
    const given = env.MERCHANT_CONSOLE_URL;
    const url = given ? config.merchantConsole.url : `http://localhost:${merchantPort}`;
    settled.merchantConsole = { ...config.merchantConsole, port: merchantPort, url };
    settled.console = { ...settled.console, merchantUrl: url };
  }
  if (config.mailboxPort === 0) settled.mailboxPort = mailboxPort;
  if (config.shopPort === 0) settled.shopPort = shopPort;
  return settled;
}

/** Turns a failed start into an error that says what to do. */
export function explainStart(error: unknown): Error {
  const { code, port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE') {
    return new Error(
      `Port ${port} is in use. Stop the program that uses it, or set PORT (GATEWAY_PORT and SECOND_GATEWAY_PORT for test gateways, SHOP_PORT for the demo shop, MAILBOX_PORT for the mailbox, CONSOLE_PORT and MERCHANT_CONSOLE_PORT for the consoles, METRICS_PORT for the metrics) to another port.`,
    );
  }
  if (code === 'EACCES' && port !== undefined) {
    return new Error(`This user may not use port ${port}. Set PORT to a port above 1023.`);
  }
  return error instanceof Error ? error : new Error(String(error));
}
