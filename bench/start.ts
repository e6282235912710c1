import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '#platform/shared/free-ports.ts';
import { median } from './create.ts';

/**
 * Seconds from `npm start` to a ready sandbox, with packages installed and an existing data folder.
 */
export async function benchStart(
  options: { rounds: number },
  progress: (text: string) => void,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'tranche-bench-'));
  chmodSync(folder, 0o711);
  try {
    progress('start: making the data folder');
    await startOnce(folder);
    const times: number[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      progress(`start: round ${round} of ${options.rounds}`);
      times.push(await startOnce(folder));
    }
    return median(times);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The mean processor time in seconds of a command, and of Node when it does nothing. */
export function benchCommand({ rounds }: { rounds: number }): { command: number; bare: number } {
  const tranche = fileURLToPath(new URL('../bin/tranche', import.meta.url));
  // The first run fills the cache of compiled code.
  processorSeconds([tranche, '--help']);
  const sums = { command: 0, bare: 0 };
  for (let round = 0; round < rounds; round += 1) {
    sums.command += processorSeconds([tranche, '--help']);
    sums.bare += processorSeconds([process.execPath, '-e', '0']);
  }
  return { command: sums.command / rounds, bare: sums.bare / rounds };
}

/** The processor time of a program and its children, as the shell that ran it reports. */
function processorSeconds(command: string[]): number {
  const script = '"$@" > /dev/null 2>&1; times';
  const times = execFileSync('sh', ['-c', script, 'sh', ...command], { encoding: 'utf8' });
  // The second line is about the children: user and system time, as `0m0.250000s`.
  const found = [...(times.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  return found.reduce(
    (sum, [, minutes, seconds]) => sum + 60 * Number(minutes) + Number(seconds),
    0,
  );
}

async function startOnce(folder: string): Promise<number> {
  const [port] = await freePorts(1);
  const dataDir = join(folder, 'data');
  const begin = performance.now();
  const child = spawn('npm', ['start'], {
    cwd: new URL('..', import.meta.url),
    env: { ...process.env, DATA_DIR: dataDir, PORT: String(port) },
    stdio: 'ignore',
    detached: true,
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  while (!existsSync(join(dataDir, 'sandbox.json'))) {
    if (child.exitCode !== null) throw new Error('npm start ended before it was ready');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const seconds = (performance.now() - begin) / 1000;
  process.kill(-(child.pid ?? 0), 'SIGINT');
  await ended;
  return seconds;
}
