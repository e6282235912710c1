import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { readConfig } from '../config.ts';
import { openDatabase } from '../database/database.ts';
import type { ReadyConfig } from '../main.ts';
import { openLog } from '../running/log.ts';
import { type Demo, ensureDemo } from '../sandbox/demo-merchant.ts';
import { startDemoShop } from '../sandbox/demo-shop.ts';
import { systemClock } from '../shared/clock.ts';
import { writePrivately } from '../shared/files.ts';
import type { Logger } from '../shared/logger.ts';
import { systemRandom } from '../shared/random.ts';
import { createSealing } from '../shared/sealing.ts';
import { command, UsageError } from './command.ts';
import { explainStart, settlePort, untilStopped } from './running.ts';
import { fields, type Terminal } from './terminal.ts';

export const sandbox = command({
  name: 'sandbox',
  summary: 'run a sandbox with a demo merchant (npm start)',
  usage: [''],
  help: `Starts everything that trying Tranche out needs, in one process, on an embedded PostgreSQL
in DATA_DIR (.tranche), and prints a demo merchant's credentials and the address of its shop. What it prints is also in
DATA_DIR/sandbox.json for as long as it runs. Ctrl-C stops it; the data stays.

  PORT=4000 DATA_DIR=/tmp/tranche tranche sandbox`,
  options: {},
  async run({ env, terminal, json, print }) {
    const config = await settlePort(readConfig(env), env);
    if (config.environment === 'production') {
      throw new UsageError('TRANCHE_ENV is production: that is run with `tranche serve`.');
    }
    await mkdir(config.dataDir, { recursive: true, mode: 0o755 });
    const sandboxFile = join(config.dataDir, 'sandbox.json');
    const log = openLog(config.logLevel, await startLogFile(config.dataDir));
    const stopped = untilStopped();
    // The whole service is behind this; the other commands do not wait for it to load.
    const { startService } = await import('../running/supervisor.ts');

    terminal.progress('Starting PostgreSQL and the service …');
    const running = await startService(config, {
      role: 'all',
      processes: 1,
      log,
      // One that was killed left its file behind, and whoever waits for ours would believe it.
      whenOwned: () => rm(sandboxFile, { force: true }),
    }).catch((error) => {
      terminal.endProgress();
      throw explainStart(error);
    });
    let shop: Awaited<ReturnType<typeof startDemoShop>> = null;
    try {
      const demo = await provideDemo(running.config, log);
      await untilReady(running.config);
      shop = await startDemoShop({ clock: systemClock, log }, running.config, demo).catch(
        (error) => {
          terminal.endProgress();
          throw explainStart(error);
        },
      );
      const facts = {
        base_url: config.baseUrl,
        shop_url: shop?.url ?? null,
        gateway_url: running.config.gateway.apiUrl ?? null,
        gateway_secret_key: running.config.gateway.secretKey,
        database_url: running.config.databaseUrl,
        ...demo,
      };
      await writePrivately(sandboxFile, facts);
      terminal.endProgress();
      print(facts, () =>
        welcome(terminal, running.config, { metrics: running.metricsUrl, shop: shop?.url }, demo),
      );
      await stopped;
      if (!json) terminal.stdout.write('\nStopping …\n');
    } finally {
      await rm(sandboxFile, { force: true });
      await shop?.stop();
      await running.stop();
      log.flushSync();
    }
    return 0;
  },
});

async function provideDemo(config: ReadyConfig, log: Logger): Promise<Demo> {
  const database = openDatabase(config.databaseUrl, { log, maxConnections: 1 });
  try {
    const sealing = createSealing(config.masterKeys, systemRandom);
    const deps = { database, clock: systemClock, random: systemRandom, sealing };
    return await ensureDemo({ ...deps, environment: config.environment }, config.dataDir);
  } finally {
    await database.close();
  }
}

const largestLog = 10_000_000;

/** A log that has grown long makes room for a new one; the last is kept. */
async function startLogFile(dataDir: string): Promise<string> {
  const file = join(dataDir, 'tranche.log');
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  if (size > largestLog) await rename(file, `${file}.1`);
  return file;
}

/** Ready is what answers, not what was started. */
async function untilReady({ host, port }: ReadyConfig): Promise<void> {
  const everywhere = ['0.0.0.0', '::'].includes(host);
  const name = everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  const response = await fetch(`http://${name}:${port}/readyz`);
  if (!response.ok) throw new Error(`The service does not get ready: ${await response.text()}`);
}

function welcome(
  terminal: Terminal,
  config: ReadyConfig,
  urls: { metrics: string; shop: string | undefined },
  { merchant, integration }: Demo,
): string {
  const near = relative('.', config.dataDir) || '.';
  const folder = near.startsWith('..') ? config.dataDir : near;
  const body = JSON.stringify({
    checkout: {
      amount: 150000,
      currency: 'ZAR',
      client_reference_id: 'order-1001',
      notify_url: 'https://shop.example/callback',
      success_url: 'https://shop.example/paid',
      cancel_url: 'https://shop.example/cart',
      customer: { email: 'thandi@example.com' },
    },
  });
  return `
${terminal.accent('▮▯▯')} Tranche sandbox

${fields(terminal, [
  ...(urls.shop === undefined ? [] : [['Demo shop', urls.shop] as [string, string]]),
  ['API', config.baseUrl],
  ['Guides', `${config.baseUrl}/docs/guides`],
  ['Reference', `${config.baseUrl}/docs`],
  ['Test gateway', config.gateway.apiUrl ?? 'Stripe test mode'],
  ['Metrics', urls.metrics],
  ['Data and log', `${folder}/, ${join(folder, 'tranche.log')}`],
  ['Merchant', `${merchant.name}  ${merchant.id}`],
  ['Client secret', integration.client_secret],
  ['Signing key', integration.signing_key],
])}

Buy something in the demo shop: open it in a browser. Or create a signed checkout yourself:

${terminal.accent(`BODY='${body}'
curl ${config.baseUrl}/api/checkouts \\
  -H 'Authorization: Bearer ${integration.client_secret}' \\
  -H 'Content-Type: application/json' \\
  -H "X-Signature: $(printf %s "$BODY" | openssl dgst -sha512 -hmac '${integration.signing_key}' -binary | openssl base64 -A)" \\
  -d "$BODY"`)}

Ctrl-C stops it.`;
}
