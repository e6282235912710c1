import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findViolations } from '#checks/invariants/invariants.ts';
import { checkoutBody } from './service.ts';

// Runs the real command line in a separate process, on free ports, and talks to it over HTTP.

const entry = path.join(import.meta.dirname, '../../src/cli/main.ts');

/** The settings that production needs besides a database, with made-up values. */
export const productionSettings = {
  TRANCHE_ENV: 'production',
  BASE_URL: 'https://pay.example',
  MASTER_KEY: createHash('sha256').update('a key for tests').digest('base64'),
  DATABASE_URL: 'postgres://127.0.0.1/tranche',
  STRIPE_SECRET_KEY: 'sk_live_0123456789',
  STRIPE_PUBLISHABLE_KEY: 'pk_live_0123456789',
  FOUR_EYES_ABOVE: '1000000',
};

export type Credentials = { id: string; client_secret: string; signing_key: string };

export type SandboxFile = {
  base_url: string;
  shop_url: string | null;
  mailbox_url: string | null;
  console_url: string;
  console_sign_in_url: string;
  gateway_url: string | null;
  database_url: string;
  merchant: { id: string; name: string };
  integration: Credentials;
};

/** Polls until the condition holds. Throws an error that says what it waited for. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  // A loaded machine may need half a minute to start a program.
  seconds = 120,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + seconds * 1000;
  // Asks ever less often, because asking takes the processor from what it waits for.
  for (let pause = 5; ; pause = Math.min(pause * 1.3, 150)) {
    const value = await condition();
    if (value) return value as NonNullable<Exclude<T, false>>;
    if (performance.now() > deadline) throw new Error(`waited ${seconds} seconds for ${what}`);
    await sleep(pause);
  }
}

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type Program = {
  child: ChildProcess;
  pid: number;
  stdout(): string;
  stderr(): string;
  /** Its log lines on standard output, if it logs there. */
  lines(): Record<string, unknown>[];
  exited: Promise<Exit>;
  hasExited(): boolean;
};

/** Starts `tranche …` with only those variables of our environment that a program needs to run. */
export function launch(args: string[], env: NodeJS.ProcessEnv, program = entry): Program {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [program, ...args], {
    // A test run starts hundreds of these, and a short one spends most of its time compiling.
    env: { PATH, HOME, NODE_COMPILE_CACHE, TMPDIR: os.tmpdir(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  let exit: Exit | null = null;
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      exit = { code, signal };
      resolve(exit);
    });
  });
  return {
    child,
    pid: child.pid ?? 0,
    stdout: () => stdout,
    stderr: () => stderr,
    lines: () =>
      stdout
        .split('\n')
        .slice(0, -1)
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line)),
    exited,
    hasExited: () => exit !== null,
  };
}

/** Runs a command to its end and returns the object that it printed. */
export async function tranche(
  args: string[],
  env: NodeJS.ProcessEnv,
  // biome-ignore lint/suspicious/noExplicitAny: assertions check the answer.
): Promise<any> {
  const program = launch([...args, '--json'], env);
  const { code } = await program.exited;
  if (code !== 0) throw new Error(`tranche ${args.join(' ')}: ${program.stderr()}`);
  return JSON.parse(program.stdout());
}

/** A folder that is removed with everything that was started in it. */
export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'tranche-faults-'));
  // As root, the embedded server runs as another user, which has to reach its data.
  await fs.chmod(folder, 0o711);
  return {
    path: folder,
    async remove() {
      for (const name of await fs.readdir(folder)) await removeCluster(path.join(folder, name));
      await fs.rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** Waits for the server of a killed sandbox, and removes what is not below its folder. */
async function removeCluster(dataDir: string): Promise<void> {
  const home = await fs.realpath(path.join(dataDir, 'postgres')).catch(() => null);
  if (home === null) return;
  await until('the orphaned PostgreSQL to stop', async () => {
    const pid = await postmasterPid(dataDir);
    return pid === null || !(await isServer(pid));
  });
  await fs.rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

/** The PostgreSQL server of a sandbox, by its postmaster.pid. */
export async function postmasterPid(dataDir: string): Promise<number | null> {
  const file = path.join(dataDir, 'postgres/data/postmaster.pid');
  const text = await fs.readFile(file, 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return pid > 0 ? pid : null;
}

async function isServer(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // Without an init process a dead orphan keeps its id, but it has no command line.
  const commandLine = await fs.readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => null);
  return commandLine === null ? process.platform !== 'linux' : commandLine.includes('postgres');
}

export type Sandbox = Program & { dataDir: string; env: NodeJS.ProcessEnv; file: SandboxFile };

/** Starts `tranche sandbox`, and returns once it has written its sandbox.json. */
export async function startSandbox(
  dataDir: string,
  settings: NodeJS.ProcessEnv = {},
  run = (env: NodeJS.ProcessEnv) => launch(['sandbox'], env),
): Promise<Sandbox> {
  const env = { DATA_DIR: dataDir, PORT: '0', ...settings };
  const name = path.join(dataDir, 'sandbox.json');
  const before = await fs.stat(name).catch(() => null);
  const program = run(env);
  const file = await until(
    'sandbox.json',
    async () => {
      if (program.hasExited()) throw new Error(`the sandbox did not start: ${program.stderr()}`);
      const now = await fs.stat(name).catch(() => null);
      // A killed sandbox leaves its file behind. Wait for a new one.
      if (now === null || (now.ino === before?.ino && now.mtimeMs === before.mtimeMs)) return null;
      return JSON.parse(await fs.readFile(name, 'utf8')) as SandboxFile;
      // A machine that runs other tests takes its time.
    },
    300,
  ).catch(async (error) => {
    // The caller does not know this process yet, so end it here.
    await kill(program);
    // The sandbox chose free ports, and another program took one before the sandbox listened on it.
    if (env.PORT === '0' && /Port \d+ is in use/.test(program.stderr())) return null;
    throw error;
  });
  if (file === null) return await startSandbox(dataDir, settings, run);
  return { ...program, dataDir, env, file };
}

export type ServeReady = Program & { metricsUrl: string; baseUrl: string };

/** Starts `tranche serve`, and returns once it logs that it is ready. */
export async function startServe(
  args: string[],
  env: NodeJS.ProcessEnv,
  file = entry,
): Promise<ServeReady> {
  const program = launch(['serve', ...args], { PORT: '0', ...env }, file);
  const ready = await until('the service to get ready', () => {
    if (program.hasExited()) throw new Error(`it did not start: ${program.stderr()}`);
    return program.lines().find(({ msg }) => msg === 'the service is ready');
  }).catch(async (error) => {
    // The caller does not know this process yet, so end it here.
    await kill(program);
    throw error;
  });
  return {
    ...program,
    metricsUrl: String(ready.metrics_url),
    baseUrl: String(ready.base_url),
  };
}

/** Kills a program, if it still runs. */
export async function kill(program: Pick<Program, 'child' | 'exited'>): Promise<void> {
  program.child.kill('SIGKILL');
  await program.exited;
}

/** Stops a program by a signal, and returns how long that took. */
export async function stop(
  program: Program,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<Exit & { seconds: number }> {
  const begun = performance.now();
  program.child.kill(signal);
  const exit = await program.exited;
  return { ...exit, seconds: (performance.now() - begun) / 1000 };
}

export async function onDatabase<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  // The server may be killed at any moment. The statement in flight fails as well.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export async function liftLimits(databaseUrl: string, integration_id: string): Promise<void> {
  const endpoints = ['POST /api/checkouts', 'GET /api/checkouts/{id}', 'GET /api/checkouts'];
  await onDatabase(databaseUrl, (client) =>
    client.query(
      `insert into integration_limits select $1, endpoint, 1000000, 1
       from unnest($2::text[]) as endpoint on conflict do nothing`,
      [integration_id, endpoints],
    ),
  );
}

export type HttpAnswer = {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: assertions check the answer.
  body: any;
  headers: http.IncomingHttpHeaders;
};

/** Sends one request over a real connection. Rejects if no complete answer came. */
export function request(
  url: string,
  options: {
    method?: string;
    headers?: Record<string, string>;
    body?: string;
    agent?: http.Agent;
  } = {},
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body = '', agent } = options;
    const sent = http.request(url, { method, headers, agent: agent ?? false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('error', reject);
      response.on('end', () => {
        const isJson = response.headers['content-type']?.includes('json');
        resolve({
          status: response.statusCode ?? 0,
          body: isJson ? JSON.parse(text) : text,
          headers: response.headers,
        });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

export function authorised(credentials: Credentials): Record<string, string> {
  return { authorization: `Bearer ${credentials.client_secret}` };
}

/** A signed POST, as a merchant's server sends it. */
export function post(
  url: string,
  credentials: Credentials,
  body: object,
  options: { headers?: Record<string, string>; agent?: http.Agent } = {},
): Promise<HttpAnswer> {
  const text = JSON.stringify(body);
  const signature = createHmac('sha512', credentials.signing_key).update(text).digest('base64');
  return request(url, {
    method: 'POST',
    body: text,
    headers: {
      ...authorised(credentials),
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      'x-signature': signature,
      ...options.headers,
    },
    ...(options.agent && { agent: options.agent }),
  });
}

/** One checkout that a client tried to create. */
export type Attempt = {
  reference: string;
  integration_id: string;
  /** With a key the client retries until it has an answer, as the contract suggests. */
  key: string | null;
  /** The status of every answer that came. */
  statuses: number[];
  unanswered: number;
  id: string | null;
};

export type Load = {
  attempts: Attempt[];
  acknowledged(): number;
  /** Stops after the requests in flight have ended. */
  stop(): Promise<void>;
};

// Tells apart two loads in one database.
let loads = 0;

/** Merchants' servers that create checkouts over several connections until `stop`. */
export function startLoad(
  target: { baseUrl(): string; callers: Credentials[] },
  connections = 8,
): Load {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const attempts: Attempt[] = [];
  loads += 1;
  const load = loads;
  let stopping = false;
  let acknowledged = 0;

  const create = async (attempt: Attempt, credentials: Credentials) => {
    const body = checkoutBody({ client_reference_id: attempt.reference });
    for (;;) {
      try {
        const answer = await post(`${target.baseUrl()}/api/checkouts`, credentials, body, {
          agent,
          ...(attempt.key !== null && { headers: { 'idempotency-key': attempt.key } }),
        });
        attempt.statuses.push(answer.status);
        if (answer.status === 200) {
          attempt.id = answer.body.data.id;
          acknowledged += 1;
        }
      } catch {
        attempt.unanswered += 1;
      }
      const isDone = attempt.key === null || attempt.id !== null || stopping;
      // A pause leaves processor time to what the test measures.
      await sleep(20);
      if (isDone) return;
    }
  };

  const loops = Array.from({ length: connections }, async (_, connection) => {
    for (let count = 0; !stopping; count += 1) {
      const credentials = target.callers[count % target.callers.length] as Credentials;
      const reference = `load-${load}-${connection}-${count}`;
      const attempt: Attempt = {
        reference,
        integration_id: credentials.id,
        key: count % 3 === 0 ? `key-${reference}` : null,
        statuses: [],
        unanswered: 0,
        id: null,
      };
      attempts.push(attempt);
      await create(attempt, credentials);
    }
  });

  return {
    attempts,
    acknowledged: () => acknowledged,
    async stop() {
      stopping = true;
      await Promise.all(loops);
      agent.destroy();
    },
  };
}

/**
 * Checks everything that must be true of a database after faults during a load. Returns a sentence
 * for each violation. Attempts in flight count as unanswered.
 */
export async function findDamage(databaseUrl: string, attempts: Attempt[]): Promise<string[]> {
  return await onDatabase(databaseUrl, async (client) => {
    const damage: string[] = [];
    const { rows } = await client.query<{ reference: string; integration_id: string; id: string }>(
      'select client_reference_id as reference, integration_id, id from checkouts',
    );
    const existing = Map.groupBy(rows, (row) => `${row.integration_id} ${row.reference}`);
    for (const { reference, integration_id, key, statuses, unanswered, id } of attempts) {
      const found = existing.get(`${integration_id} ${reference}`) ?? [];
      const where = `${reference} (${key ?? 'no key'}; ${statuses.join()}; ${unanswered} unanswered)`;
      if (id !== null && !found.some((row) => row.id === id)) {
        damage.push(`${where} was acknowledged and is not there`);
      }
      if (found.length > 1) damage.push(`${where} is there ${found.length} times`);
      const wasRefused = statuses.length > 0 && unanswered === 0 && id === null;
      if (wasRefused && found.length > 0) damage.push(`${where} was refused and is there`);
    }
    const now = new Date().toISOString();
    for (const { name, row } of await findViolations({ pool: client }, now)) {
      damage.push(`${name}: ${JSON.stringify(row)}`);
    }
    // A checkout made with a key must have its answer stored.
    const keys = await client.query<{ key: string }>('select key from idempotency_keys');
    const answered = new Set(keys.rows.map(({ key }) => key));
    for (const { key, reference, integration_id } of attempts) {
      if (key === null || answered.has(key)) continue;
      if (existing.has(`${integration_id} ${reference}`)) {
        damage.push(`a checkout without its answer: ${key}`);
      }
    }
    return damage;
  });
}
