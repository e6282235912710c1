import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '../config.ts';
import { startProgram } from '../running/program.ts';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import { isLoopback } from '../shared/loopback.ts';
import type { Demo } from './demo-merchant.ts';

/**
 * The demo merchant's shop, a program that knows no more of us than any merchant's. Only where
 * browsers and callbacks reach it under `localhost`: nowhere else is there an address to give it.
 */
export async function startDemoShop(
  deps: { clock: Clock; log: Logger },
  config: Pick<Config, 'baseUrl' | 'dataDir' | 'shopPort'>,
  { integration }: Demo,
): Promise<{ url: string; stop(): Promise<void> } | null> {
  if (!isLoopback(new URL(config.baseUrl).hostname)) return null;
  return await startProgram(deps, {
    name: 'the demo shop',
    file: fileURLToPath(new URL('../../examples/shop/server.js', import.meta.url)),
    port: config.shopPort,
    // Nothing of our own environment: our secrets are not a merchant's business.
    env: (port) => ({
      SHOP_PORT: String(port),
      SHOP_FILE: join(config.dataDir, 'shop.json'),
      TRANCHE_URL: config.baseUrl,
      CLIENT_SECRET: integration.client_secret,
      SIGNING_KEY: integration.signing_key,
    }),
  });
}
