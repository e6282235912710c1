import { createServer } from 'node:net';
import type { Config } from '../config.ts';
import { type Clock, systemClock } from '../shared/clock.ts';

/** npm passes on the Ctrl-C that the terminal has sent us already: that is not a second one. */
const echoMilliseconds = 500;

/** Resolves at the first Ctrl-C or SIGTERM. A second one does not wait for an orderly end. */
export function untilStopped(clock: Clock = systemClock): Promise<void> {
  return new Promise((resolve) => {
    let askedAt: number | null = null;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        askedAt ??= clock.monotonic();
        if (clock.monotonic() - askedAt > echoMilliseconds) process.exit(130);
        resolve();
      });
    }
  });
}

/** Port 0 means any free one. It is chosen here, because our own address is in what we answer. */
export async function settlePort(config: Config, env: NodeJS.ProcessEnv): Promise<Config> {
  if (config.port !== 0) return config;
  const port = await freePort();
  const baseUrl = env.BASE_URL ? config.baseUrl : `http://localhost:${port}`;
  return { ...config, port, baseUrl };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/** A start that failed, in the words of somebody who has to do something about it. */
export function explainStart(error: unknown): Error {
  const { code, port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE') {
    return new Error(
      `Port ${port} is taken. Stop what uses it, or set PORT (GATEWAY_PORT for the test gateway, SHOP_PORT for the demo shop, METRICS_PORT for the metrics) to another one.`,
    );
  }
  if (code === 'EACCES' && port !== undefined) {
    return new Error(`Port ${port} may not be used by this user. Set PORT to one above 1023.`);
  }
  return error instanceof Error ? error : new Error(String(error));
}
