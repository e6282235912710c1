import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Protocol } from '#gateway/settings.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { writePrivately } from '#platform/shared/files.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { startProgram } from '#platform/shared/program.ts';
import type { Random } from '#platform/shared/random.ts';

type Keys = { secret_key: string; publishable_key: string; webhook_secret: string };

/**
 * Starts the sandbox's gateway as a separate program with its own origin, like the real one. Its
 * books are in the data folder and survive a restart.
 */
export async function startTestGatewayProcess(
  deps: { clock: Clock; random: Random; log: Logger },
  options: {
    dataDir: string;
    port: number;
    pageOrigin: string;
    /** The URL to which the gateway posts events. Null if it posts none. */
    webhookUrl: string | null;
    /** The protocol of its events. It answers requests in every protocol. */
    protocol: Protocol;
    /** The name of its files. If there are several gateways, each has its own books. */
    files?: string;
  },
): Promise<Keys & { url: string; stop(): Promise<void> }> {
  await mkdir(options.dataDir, { recursive: true });
  const { files = 'gateway' } = options;
  const keys = await ensureKeys(deps.random, options.dataDir, files);
  const program = await startProgram(deps, {
    name: 'the test gateway',
    file: fileURLToPath(new URL('../../../test-gateway/main.ts', import.meta.url)),
    port: options.port,
    // Nothing else from our own environment is passed on, because it contains our secrets.
    env: (port) => ({
      ...machineOf(process.env),
      GATEWAY_PORT: String(port),
      GATEWAY_HOST: 'localhost',
      GATEWAY_STATE_FILE: join(options.dataDir, `${files}.sqlite`),
      GATEWAY_SECRET_KEY: keys.secret_key,
      GATEWAY_PUBLISHABLE_KEY: keys.publishable_key,
      GATEWAY_PAGE_ORIGINS: options.pageOrigin,
      GATEWAY_WEBHOOK_URL: options.webhookUrl ?? '',
      GATEWAY_WEBHOOK_SECRET: keys.webhook_secret,
      GATEWAY_PROTOCOL: options.protocol,
    }),
  });
  return { ...keys, ...program };
}

/** The environment variables that a program needs. */
function machineOf(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const names = [
    'PATH',
    'HOME',
    'TMPDIR',
    'TEMP',
    'SystemRoot',
    'NODE_OPTIONS',
    'NODE_COMPILE_CACHE',
  ];
  return Object.fromEntries(names.flatMap((name) => (name in env ? [[name, env[name]]] : [])));
}

async function ensureKeys(random: Random, dataDir: string, name: string): Promise<Keys> {
  const file = join(dataDir, `${name}.json`);
  const made = (prefix: string) => `${prefix}_${random.bytes(24).toString('base64url')}`;
  const known: Keys | null = await readFile(file, 'utf8')
    .then(JSON.parse)
    .catch(() => null);
  if (known !== null) return known;
  const keys = {
    secret_key: made('sk_test'),
    publishable_key: made('pk_test'),
    webhook_secret: made('whsec'),
  };
  await writePrivately(file, keys);
  return keys;
}
