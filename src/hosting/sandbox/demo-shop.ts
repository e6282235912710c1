import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '#config.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import { startProgram } from '#platform/shared/program.ts';
import type { Demo } from './demo-merchant.ts';

/**
 * Starts the demo merchant's shop, a program that knows no more about us than any merchant's
 * program does. Its only address is on `localhost`, so it runs only if the service is on
 * `localhost` too.
 */
export async function startDemoShop(
  deps: { clock: Clock; log: Logger },
  config: Pick<Config, 'baseUrl' | 'dataDir' | 'shopPort'>,
  { integration }: Demo,
  mailboxUrl: string | null = null,
): Promise<{ url: string; stop(): Promise<void> } | null> {
  if (!isLoopback(new URL(config.baseUrl).hostname)) return null;
  return await startProgram(deps, {
    name: 'the demo shop',
    file: fileURLToPath(new URL('../../../examples/shop/server.js', import.meta.url)),
    port: config.shopPort,
    // Our own environment is not passed on, because it contains our secrets.
    env: (port) => ({
      SHOP_PORT: String(port),
      SHOP_FILE: join(config.dataDir, 'shop.json'),
      TRANCHE_URL: config.baseUrl,
      CLIENT_SECRET: integration.client_secret,
      SIGNING_KEY: integration.signing_key,
      ...(mailboxUrl !== null && { MAILBOX_URL: mailboxUrl }),
    }),
  });
}
