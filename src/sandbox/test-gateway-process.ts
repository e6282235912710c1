import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../shared/clock.ts';
import { writePrivately } from '../shared/files.ts';
import type { Logger } from '../shared/logger.ts';
import { startProgram } from '../shared/program.ts';
import type { Random } from '../shared/random.ts';

type Keys = { secret_key: string; publishable_key: string };

/**
 * Starts the sandbox's gateway as a separate program with its own origin, as the real one is. Its
 * books are in the data folder and survive a restart.
 */
export async function startTestGatewayProcess(
  deps: { clock: Clock; random: Random; log: Logger },
  options: { dataDir: string; port: number; pageOrigin: string },
): Promise<Keys & { url: string; stop(): Promise<void> }> {
  await mkdir(options.dataDir, { recursive: true });
  const keys = await ensureKeys(deps.random, options.dataDir);
  const program = await startProgram(deps, {
    name: 'the test gateway',
    file: fileURLToPath(new URL('../../test-gateway/main.ts', import.meta.url)),
    port: options.port,
    env: (port) => ({
      ...process.env,
      GATEWAY_PORT: String(port),
      GATEWAY_HOST: 'localhost',
      GATEWAY_STATE_FILE: join(options.dataDir, 'gateway.sqlite'),
      GATEWAY_SECRET_KEY: keys.secret_key,
      GATEWAY_PUBLISHABLE_KEY: keys.publishable_key,
      GATEWAY_PAGE_ORIGINS: options.pageOrigin,
    }),
  });
  return { ...keys, ...program };
}

async function ensureKeys(random: Random, dataDir: string): Promise<Keys> {
  const file = join(dataDir, 'gateway.json');
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch {
    const keys = {
      secret_key: `sk_test_${random.bytes(24).toString('base64url')}`,
      publishable_key: `pk_test_${random.bytes(24).toString('base64url')}`,
    };
    await writePrivately(file, keys);
    return keys;
  }
}
