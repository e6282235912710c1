import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median } from './create.ts';

/**
 * Seconds from `npm start` to a ready sandbox, with packages installed and an existing data folder.
 */
export async function benchStart(
  options: { rounds: number; port: number },
  progress: (text: string) => void,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'tranche-bench-'));
  chmodSync(folder, 0o711);
  try {
    progress('start: making the data folder');
    await startOnce(folder, options.port);
    const times: number[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      progress(`start: round ${round} of ${options.rounds}`);
      times.push(await startOnce(folder, options.port));
    }
    return median(times);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startOnce(folder: string, port: number): Promise<number> {
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
