import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../shared/clock.ts';
import { writePrivately } from '../shared/files.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';

const program = fileURLToPath(new URL('../../test-gateway/main.ts', import.meta.url));

type Keys = { secret_key: string; publishable_key: string };

/**
 * The sandbox's gateway: a program of its own, on an origin of its own, as the real one is. Its
 * books are in the data folder and outlive it; when it dies it is started again.
 */
export async function startTestGatewayProcess(
  deps: { clock: Clock; random: Random; log: Logger },
  options: { dataDir: string; port: number; pageOrigin: string },
): Promise<Keys & { url: string; stop(): Promise<void> }> {
  await mkdir(options.dataDir, { recursive: true });
  const keys = await ensureKeys(deps.random, options.dataDir);
  let stopping = false;
  let child: ChildProcess;

  const start = async (port: number): Promise<string> => {
    child = spawn(process.execPath, [program], {
      env: {
        ...process.env,
        GATEWAY_PORT: String(port),
        GATEWAY_HOST: 'localhost',
        GATEWAY_STATE_FILE: join(options.dataDir, 'gateway.sqlite'),
        GATEWAY_SECRET_KEY: keys.secret_key,
        GATEWAY_PUBLISHABLE_KEY: keys.publishable_key,
        GATEWAY_PAGE_ORIGINS: options.pageOrigin,
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // A terminal's Ctrl-C is not for it: it ends after those who may still be paying.
      detached: true,
    });
    const url = await untilListening(child, port);
    // From here on it does not keep us alive; until then it must, or its complaint is never heard.
    child.unref();
    child.channel?.unref();
    return url;
  };

  /** One whose parent was killed ends by itself, but perhaps not before we are here. */
  const startAfterOrphan = async (): Promise<string> => {
    for (let tries = 0; ; tries += 1) {
      try {
        return await start(options.port);
      } catch (error) {
        if ((error as { code?: string }).code !== 'EADDRINUSE' || tries >= 15) throw error;
        await deps.clock.sleep(200);
      }
    }
  };

  const url = await startAfterOrphan();
  const port = Number(new URL(url).port);
  const watch = async () => {
    while (!stopping) {
      await once(child, 'exit');
      if (stopping) return;
      deps.log.error({}, 'the test gateway died and is started again');
      await deps.clock.sleep(200);
      await start(port).catch((error) => deps.log.error({ err: error }, 'it does not start'));
    }
  };
  void watch();

  return {
    ...keys,
    url,
    async stop() {
      stopping = true;
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      const patience = new AbortController();
      void deps.clock.sleep(1_000, patience.signal).then(() => {
        if (!patience.signal.aborted) child.kill('SIGKILL');
      });
      await ended;
      patience.abort();
    },
  };
}

/** It says where it listens in one line, or why it does not. */
async function untilListening(child: ChildProcess, port: number): Promise<string> {
  let complaint = '';
  child.stderr?.on('data', (chunk) => {
    complaint = `${complaint}${chunk}`.slice(-2_000);
  });
  const ended = once(child, 'exit').then(() => {
    const code = /EADDRINUSE|EACCES/.exec(complaint)?.[0];
    throw Object.assign(new Error(`The test gateway did not start. ${complaint}`), { code, port });
  });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  ended.catch(() => {});
  return JSON.parse(line).url;
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
