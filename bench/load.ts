import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The result of sending requests for some time. */
export type Load = {
  perSecond: number;
  p50: number;
  p99: number;
  /** Answers other than 200, and sockets that failed. */
  failures: number;
  tool: 'wrk' | 'autocannon';
};

export type Request = {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
};

export function has(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** Runs a program to its end and returns its standard output. */
export async function run(
  program: string,
  args: string[],
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const child = spawn(program, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${stderr}`);
  return stdout;
}

const scripts = mkdtempSync(join(tmpdir(), 'tranche-bench-'));
process.on('exit', () => rmSync(scripts, { recursive: true, force: true }));
let number = 0;

/** Writes a script for a program to run. It is deleted when this process exits. */
export function writeScript(name: string, text: string): string {
  const file = join(scripts, `${number}-${name}`);
  number += 1;
  writeFileSync(file, text);
  return file;
}

/** The files that a program wrote beside a script, found by the beginning of their paths. */
export function listScripts(begin: string): string[] {
  return readdirSync(scripts)
    .map((name) => join(scripts, name))
    .filter((file) => file.startsWith(begin));
}

/** Repeats one request from `connections` clients at once. */
export async function load(
  request: Request,
  options: { connections: number; seconds: number },
): Promise<Load> {
  return has('wrk')
    ? await loadWithWrk(request, options)
    : await loadWithAutocannon(request, options);
}

async function loadWithWrk(
  request: Request,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<Load> {
  // Lua and JSON quote plain text in the same way.
  const quote = JSON.stringify;
  const script = writeScript(
    'request.lua',
    `wrk.method = ${quote(request.method)}
     wrk.body = ${request.body === undefined ? 'nil' : quote(request.body)}
     ${Object.entries(request.headers)
       .map(([name, value]) => `wrk.headers[${quote(name)}] = ${quote(value)}`)
       .join('\n')}
     function done(summary, latency)
       local failed = summary.errors.status + summary.errors.connect + summary.errors.read +
         summary.errors.write + summary.errors.timeout
       print(string.format("RESULT %d %d %d %d %d", summary.requests, summary.duration,
         latency:percentile(50), latency:percentile(99), failed))
     end`,
  );
  const stdout = await run('wrk', [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '-s',
    script,
    request.url,
  ]);
  const result = /RESULT ([\d ]+)/.exec(stdout)?.[1];
  if (result === undefined) throw new Error(`wrk did not report: ${stdout}`);
  const [requests = 0, microseconds = 1, p50 = 0, p99 = 0, failures = 0] = result
    .split(' ')
    .map(Number);
  return {
    perSecond: requests / (microseconds / 1e6),
    p50: p50 / 1000,
    p99: p99 / 1000,
    failures,
    tool: 'wrk',
  };
}

async function loadWithAutocannon(
  request: Request,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<Load> {
  const { default: autocannon } = await import('autocannon');
  const result = await autocannon({ ...request, connections, duration: seconds });
  return {
    perSecond: result['2xx'] / result.duration,
    p50: result.latency.p50,
    p99: result.latency.p99,
    failures: result.non2xx + result.errors,
    tool: 'autocannon',
  };
}
