import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { type Config, readConfig } from '#config.ts';
import { openLog } from '#hosting/running/log.ts';
import { type Demo, ensureDemo } from '#hosting/sandbox/demo-merchant.ts';
import { startDemoShop } from '#hosting/sandbox/demo-shop.ts';
import { startMailbox } from '#hosting/sandbox/mailbox.ts';
import { weeksMax } from '#hosting/sandbox/story/season.ts';
import type { ReadyConfig } from '#main.ts';
import { createSignInLink } from '#operating/people/sandbox-link.ts';
import { hasCheckouts } from '#operating/search/overview.sql.ts';
import { openDatabase } from '#platform/database/database.ts';
import { tlsAt } from '#platform/http/server-options.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { writePrivately } from '#platform/shared/files.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import { systemRandom } from '#platform/shared/random.ts';
import { createSealing } from '#platform/shared/sealing.ts';
import { type Context, command, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { explainStart, settlePort, untilOneEnds, untilStopped } from './running.ts';
import { fields, type Terminal } from './terminal.ts';

export const sandbox = command({
  name: 'sandbox',
  usage: ['[--story] [--end-with PID …]'],
  help: `Starts the service, a test gateway and a demo shop on an embedded PostgreSQL in DATA_DIR
(.tranche), and prints their addresses and the demo merchant's credentials. While it runs, the same
facts are in DATA_DIR/sandbox.json. Ctrl-C stops it; the data stays. With --story it first plays a
story of twelve weeks, unless there are orders already; see \`tranche sandbox story\`. With
--end-with it also stops when that process ends; \`npm start\` passes its own ID.

  PORT=4000 DATA_DIR=/tmp/tranche tranche sandbox`,
  options: {
    story: { type: 'boolean', default: false },
    'end-with': { type: 'string', multiple: true, default: [] },
  },
  async run(context) {
    const { values, env, terminal, json, print } = context;
    const parents = values['end-with'].map(toPid);
    const settled = await settlePort(readConfig(env), env);
    const story = storyOf(context);
    const console = { ...settled.console, story };
    const page = { ...settled.page, ...placesOf(settled) };
    const config = { ...settled, page, console };
    if (config.environment === 'production') {
      throw new UsageError('TRANCHE_ENV is production. Run production with `tranche serve`.');
    }
    await mkdir(config.dataDir, { recursive: true, mode: 0o755 });
    const sandboxFile = join(config.dataDir, 'sandbox.json');
    const log = openLog(config, await startLogFile(config.dataDir));
    let isOrphan = false;
    const orphaned = untilOneEnds(parents).then(() => (isOrphan = true));
    const stopped = Promise.race([untilStopped(), orphaned]);
    const refuse = (error: unknown): never => {
      terminal.endProgress();
      throw explainStart(error);
    };
    // The service is loaded only here, so that other commands start quickly.
    const { startService } = await import('#hosting/running/supervisor.ts');

    terminal.progress('Starting PostgreSQL and the service…');
    const running = await startService(config, {
      role: 'all',
      processes: 1,
      log,
      // A program that waits for the file must not read the one that a killed sandbox left.
      whenOwned: () => rm(sandboxFile, { force: true }),
    }).catch(refuse);
    let shop: Awaited<ReturnType<typeof startDemoShop>> = null;
    let mailbox: Awaited<ReturnType<typeof provideMailbox>> = null;
    try {
      const demo = await provideDemo(running.config, log);
      await untilReady(running.config);
      mailbox = await provideMailbox(running.config, log).catch(refuse);
      shop = await startDemoShop(
        { clock: systemClock, log },
        running.config,
        demo,
        mailbox?.url ?? null,
      ).catch(refuse);
      const facts = {
        shop_url: shop?.url ?? null,
        mailbox_url: mailbox?.url ?? null,
        console_sign_in_url: await provideSignIn(running.config, log),
        ...addressesOf(running.config),
        ...demo,
      };
      await writePrivately(sandboxFile, facts);
      terminal.endProgress();
      const urls = {
        ...{ metrics: running.metricsUrl, shop: shop?.url, mailbox: mailbox?.url },
        console: facts.console_sign_in_url ?? facts.console_url,
      };
      print(facts, () => welcome(terminal, running.config, urls, demo));
      if (values.story) story.play();
      await stopped;
      // If the reader of our output has ended too, printing would fail.
      if (!json && !isOrphan) terminal.print('\nStopping…');
    } finally {
      await rm(sandboxFile, { force: true });
      await shop?.stop();
      await mailbox?.stop();
      await running.stop();
      await log.settled();
    }
  },
});

/** Plays one story at a time. A story that fails does not stop the sandbox. */
function storyOf(context: Context) {
  const { terminal, env } = context;
  let isPlaying = false;
  async function play(operator: string | undefined): Promise<void> {
    const { sandboxStory } = await import('./sandbox-story.ts');
    const isEmpty = await withMigrated(
      context,
      async ({ database }) => !(await hasCheckouts(database.db)),
    );
    if (!isEmpty) {
      terminal.warn('There are orders already. `tranche sandbox story --seed 2` plays more.');
      return;
    }
    await sandboxStory.run({
      ...context,
      env: operator === undefined ? env : { ...env, TRANCHE_OPERATOR: operator },
      // The sandbox has already printed its own answer, and a program reads only one.
      print: context.json ? () => {} : context.print,
      values: { seed: '1', weeks: String(weeksMax) },
    });
  }
  return {
    isPlaying: () => isPlaying,
    play(operator?: string) {
      if (isPlaying) return;
      isPlaying = true;
      play(operator)
        .catch((error) => terminal.warn(`The story ended early: ${error.message}`))
        .finally(() => {
          isPlaying = false;
        });
    },
  };
}

/** The addresses and secrets of the service, its console, its gateway and its database. */
function addressesOf({ baseUrl, console, gateways, databaseUrl }: ReadyConfig) {
  const listed = gateways.map(({ name, protocol, apiUrl, secretKey: secret_key, isClosed }) => ({
    ...{ name, protocol, url: apiUrl ?? null, secret_key },
    ...(isClosed && { is_closed: true }),
  }));
  const [byDefault] = listed;
  return {
    base_url: baseUrl,
    console_url: console.url,
    merchant_console_url: console.merchantUrl,
    gateway_url: byDefault?.url ?? null,
    gateway_secret_key: byDefault?.secret_key ?? '',
    gateways: listed,
    database_url: databaseUrl,
  };
}

function toPid(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new UsageError(`--end-with is "${text}" and must be the ID of a process.`);
}

async function provideDemo(config: ReadyConfig, log: Logger): Promise<Demo> {
  const database = openDatabase(config.databaseUrl, { log, maxConnections: 1 });
  try {
    const sealing = createSealing(config.masterKeys, systemRandom, config.sealingCipher);
    const deps = { database, log, clock: systemClock, random: systemRandom, sealing };
    const { environment, fourEyesAbove } = config;
    return await ensureDemo({ ...deps, environment, fourEyesAbove }, config.dataDir);
  } finally {
    await database.close();
  }
}

/** Creates a one-time link into the console. Returns null if the console is not on this machine. */
async function provideSignIn(config: ReadyConfig, log: Logger): Promise<string | null> {
  if (!config.console.allowsSignInLinks) return null;
  const database = openDatabase(config.databaseUrl, { log, maxConnections: 1 });
  try {
    const deps = { database, clock: systemClock, random: systemRandom, console: config.console };
    return await createSignInLink(deps, 'sandbox');
  } finally {
    await database.close();
  }
}

/**
 * The URLs of the sandbox's other pages. They are null unless the sandbox is on this machine, and a
 * sandbox that sends mail has no mailbox.
 */
function placesOf({ mail, mailboxPort, shopPort, console, baseUrl }: Config) {
  const isOnLoopback = isLoopback(new URL(baseUrl).hostname);
  return {
    mailboxUrl: mail === null && isOnLoopback ? `http://localhost:${mailboxPort}` : null,
    sandbox: isOnLoopback ? { shop: `http://localhost:${shopPort}`, console: console.url } : null,
  };
}

/** A sandbox that uses a mail server has no mailbox. */
async function provideMailbox(
  config: ReadyConfig,
  log: Logger,
): Promise<{ url: string; stop(): Promise<void> } | null> {
  if (config.mail !== null) return null;
  const database = openDatabase(config.databaseUrl, { log, maxConnections: 2 });
  try {
    const { url, stop } = await startMailbox(
      { database, log, baseUrl: config.baseUrl },
      config.mailboxPort,
    );
    return {
      url,
      async stop() {
        await stop();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

const logBytesMax = 10_000_000;

/** Rotates a log that has grown too long, and keeps one old log. */
async function startLogFile(dataDir: string): Promise<string> {
  const file = join(dataDir, 'tranche.log');
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  if (size > logBytesMax) await rename(file, `${file}.1`);
  return file;
}

/** Waits until the service has answered that it is ready. Under TLS nothing is waited for. */
async function untilReady({ host, port, tls }: ReadyConfig): Promise<void> {
  // The certificate is for the public name, not for the name used here.
  if (tlsAt(tls, host) !== null) return;
  const everywhere = ['0.0.0.0', '::'].includes(host);
  const name = everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  const response = await fetch(`http://${name}:${port}/readyz`);
  if (!response.ok) throw new Error(`The service is not ready: ${await response.text()}`);
}

function welcome(
  terminal: Terminal,
  config: ReadyConfig,
  urls: {
    metrics: string;
    shop: string | undefined;
    mailbox: string | undefined;
    console: string;
  },
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
  ['Demo shop', urls.shop],
  ['Console', urls.console],
  ['API', config.baseUrl],
  ['Mailbox', urls.mailbox ?? 'off: MAIL_URL is set, so messages are sent'],
  ['Guides', `${config.baseUrl}/docs/guides`],
  ['Reference', `${config.baseUrl}/docs`],
  ...config.gateways.map(({ name, apiUrl = 'a real gateway in test mode' }): [string, string] => [
    config.gateways.length === 1 ? 'Test gateway' : `Gateway ${name}`,
    apiUrl,
  ]),
  ['Metrics', urls.metrics],
  ['Data and log', `${folder}/, ${join(folder, 'tranche.log')}`],
  ['Merchant', `${merchant.name}  ${merchant.id}`],
  ['Client secret', integration.client_secret],
  ['Signing key', integration.signing_key],
])}

Open the demo shop in a browser and buy something, or create a signed checkout:

${terminal.accent(`BODY='${body}'
curl ${config.baseUrl}/api/checkouts \\
  -H 'Authorization: Bearer ${integration.client_secret}' \\
  -H 'Content-Type: application/json' \\
  -H "X-Signature: $(printf %s "$BODY" | openssl dgst -sha512 -hmac '${integration.signing_key}' -binary | openssl base64 -A)" \\
  -d "$BODY"`)}

Ctrl-C stops the sandbox.`;
}
