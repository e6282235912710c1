import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findViolations } from '#checks/invariants/invariants.ts';
import { commandLine } from './cli.ts';
import { onDatabase } from './database-server.ts';
import { type Credentials, post } from './http.ts';
import { copySandboxModel } from './sandbox-model.ts';
import { checkoutBody } from './service.ts';
import { until } from './until.ts';

// Runs the real command line in a separate process, on free ports, and talks to it over HTTP.

const entry = path.join(import.meta.dirname, '../../src/cli/main.ts');

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

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type Program = {
  child: ChildProcess;
  pid: number;
  stdout(): string;
  stderr(): string;
  /** The program's log lines on standard output, if it logs there. */
  lines(): Record<string, unknown>[];
  exited: Promise<Exit>;
  hasExited(): boolean;
};

/** Starts `tranche …` with only those variables of our environment that a program needs to run. */
export function launch(args: string[], env: NodeJS.ProcessEnv, program = entry): Program {
  const { PATH, HOME, NODE_COMPILE_CACHE, NODE_OPTIONS } = process.env;
  const child = spawn(process.execPath, [program, ...args], {
    // A test run starts hundreds of these, and a short one spends most of its time loading modules.
    env: { PATH, HOME, NODE_COMPILE_CACHE, NODE_OPTIONS, TMPDIR: os.tmpdir(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  let exit: Exit | null = null;
  const lines: Record<string, unknown>[] = [];
  let parsed = 0;
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
    lines: () => {
      // Tests ask often, and a program under load logs much, so each line is parsed once.
      const complete = stdout.lastIndexOf('\n') + 1;
      const added = stdout.slice(parsed, complete).split('\n');
      parsed = complete;
      lines.push(...added.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line)));
      return [...lines];
    },
    exited,
    hasExited: () => exit !== null,
  };
}

/** Runs a command in this process and returns the object that it printed. */
export async function tranche(
  args: string[],
  env: NodeJS.ProcessEnv,
  // biome-ignore lint/suspicious/noExplicitAny: assertions check the answer.
): Promise<any> {
  // A sandbox has its own master key.
  const run = commandLine({ MASTER_KEY: '', ...env }).run;
  const { code, stdout, stderr } = await run(...args, '--json');
  if (code !== 0) throw new Error(`tranche ${args.join(' ')}: ${stderr}`);
  return JSON.parse(stdout);
}

export type Sandbox = Program & { dataDir: string; env: NodeJS.ProcessEnv; file: SandboxFile };

/**
 * Starts `tranche sandbox`, and returns once it has written its sandbox.json. A new data folder is
 * a copy of a filled one, unless the caller starts the program itself with `run`.
 */
export async function startSandbox(
  dataDir: string,
  settings: NodeJS.ProcessEnv = {},
  run?: (env: NodeJS.ProcessEnv) => Program,
): Promise<Sandbox> {
  const isNew = (await fs.stat(dataDir).catch(() => null)) === null;
  if (isNew && run === undefined) await copySandboxModel(dataDir);
  const env = { DATA_DIR: dataDir, PORT: '0', ...settings };
  const name = path.join(dataDir, 'sandbox.json');
  const before = await fs.stat(name).catch(() => null);
  const program = run?.(env) ?? launch(['sandbox'], env);
  const file = await until(
    'sandbox.json',
    async () => {
      if (program.hasExited()) throw new Error(`the sandbox did not start: ${program.stderr()}`);
      const now = await fs.stat(name).catch(() => null);
      // A killed sandbox leaves its file behind, so this waits for a new one.
      if (now === null || (now.ino === before?.ino && now.mtimeMs === before.mtimeMs)) return null;
      return JSON.parse(await fs.readFile(name, 'utf8')) as SandboxFile;
      // The time limit is long, because the machine may be running other tests as well.
    },
    300,
  ).catch(async (error) => {
    // The caller does not know this process yet, so it is ended here.
    await kill(program);
    if (env.PORT === '0' && wasPortTaken(program)) return null;
    throw error;
  });
  if (file === null) return await startSandbox(dataDir, settings, run);
  return { ...program, dataDir, env, file };
}

/**
 * Whether another program took a port that the sandbox had chosen, before it could listen there.
 */
const wasPortTaken = (program: Program) => /Port \d+ is in use/.test(program.stderr());

export type ServeReady = Program & { metricsUrl: string; baseUrl: string };

/** Starts `tranche serve`, and returns once it logs that it is ready. */
export async function startServe(
  args: string[],
  env: NodeJS.ProcessEnv,
  file = entry,
): Promise<ServeReady> {
  // Otherwise files that run at once would share the repository's own data folder.
  const DATA_DIR = await fs.mkdtemp(path.join(os.tmpdir(), 'tranche-serve-'));
  const program = launch(['serve', ...args], { PORT: '0', DATA_DIR, ...env }, file);
  const ready = await until('the service to get ready', () => {
    if (program.hasExited()) throw new Error(`it did not start: ${program.stderr()}`);
    return program.lines().find(({ msg }) => msg === 'the service is ready');
  }).catch(async (error) => {
    // The caller does not know this process yet, so it is ended here.
    await kill(program);
    if ((env.PORT ?? '0') === '0' && wasPortTaken(program)) return null;
    throw error;
  });
  if (ready === null) return await startServe(args, env, file);
  return {
    ...program,
    metricsUrl: String(ready.metrics_url),
    baseUrl: String(ready.base_url),
  };
}

/** Kills a program if it is still running. */
export async function kill(program: Pick<Program, 'child' | 'exited'>): Promise<void> {
  program.child.kill('SIGKILL');
  await program.exited;
}

/** Stops a program with a signal, and returns how long that took. */
export async function stop(
  program: Program,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<Exit & { seconds: number }> {
  const begun = performance.now();
  program.child.kill(signal);
  const exit = await program.exited;
  return { ...exit, seconds: (performance.now() - begun) / 1000 };
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

/** A checkout that a client tried to create. */
export type Attempt = {
  reference: string;
  integration_id: string;
  /** With a key the client retries until it has an answer, as the contract suggests. */
  key: string | null;
  /** The statuses of all answers that came. */
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

// Distinguishes two loads in one database.
let loads = 0;

/**
 * Merchants' servers that create checkouts over several connections until `stop`. The pause between
 * two requests leaves processor time for what the test measures.
 */
export function startLoad(
  target: { baseUrl(): string; callers: Credentials[] },
  connections = 8,
  pauseMilliseconds = 20,
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
      let hasAnswer = true;
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
        hasAnswer = false;
      }
      const isDone = attempt.key === null || attempt.id !== null || stopping;
      // While nothing answers, many requests would show no more than a few.
      await sleep(hasAnswer ? pauseMilliseconds : 10 * pauseMilliseconds);
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
 * Checks everything that must be true in a database after faults during a load. Returns a sentence
 * for each violation. Attempts in flight count as unanswered. `invariants` names those that hold
 * where a test moves the clock; otherwise all must.
 */
export async function findDamage(
  databaseUrl: string,
  attempts: Attempt[],
  invariants?: string[],
): Promise<string[]> {
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
    for (const { name, row } of await findViolations({ pool: client }, now, invariants)) {
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
