import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

type ProgramOptions = {
  /** Used in a sentence: "the test gateway". */
  name: string;
  file: string;
  port: number;
  env(port: number): NodeJS.ProcessEnv;
};

type Program = {
  readonly deps: { clock: Clock; log: Logger };
  readonly options: ProgramOptions;
  /** The running process. `spawnProgram` writes it. */
  child: ChildProcess | null;
  /** Whether `stop` was called. */
  isStopping: boolean;
};

/**
 * Starts a separate program beside the service, with its own origin. The program prints where it
 * listens as one line of JSON. What it writes to standard error goes to our log. If it dies, it is
 * started again at the same port.
 */
export async function startProgram(
  deps: { clock: Clock; log: Logger },
  options: ProgramOptions,
): Promise<{ url: string; stop(): Promise<void> }> {
  const program: Program = { deps, options, child: null, isStopping: false };
  const url = await spawnAfterOrphan(program);
  void keepRunning(program, Number(new URL(url).port));
  return { url, stop: () => stopProgram(program) };
}

async function spawnProgram(program: Program, port: number): Promise<string> {
  const { name, file, env } = program.options;
  const child = spawn(process.execPath, [file], {
    env: env(port),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // Ctrl-C in a terminal must not reach the program: it stops after the processes that use it.
    detached: true,
  });
  program.child = child;
  const url = await untilListening(child, name, port, (line) =>
    program.deps.log.warn({ program: name, line }, 'a program wrote to standard error'),
  );
  // From now on the program must not keep this process alive. Until now it had to, or its error
  // would be lost.
  child.unref();
  child.channel?.unref();
  return url;
}

/**
 * Retries while the port is taken: a program whose parent was killed ends by itself, but may hold
 * the port for a moment.
 */
async function spawnAfterOrphan(program: Program): Promise<string> {
  for (let retries = 0; ; retries += 1) {
    try {
      return await spawnProgram(program, program.options.port);
    } catch (error) {
      if ((error as { code?: string }).code !== 'EADDRINUSE' || retries >= 15) throw error;
      await program.deps.clock.sleep(200);
    }
  }
}

async function keepRunning(program: Program, port: number): Promise<void> {
  const { clock, log } = program.deps;
  const { name } = program.options;
  let isUp = true;
  while (!program.isStopping) {
    if (isUp && program.child) await once(program.child, 'exit');
    if (program.isStopping) return;
    log.error({ program: name }, 'a program died and is being restarted');
    await clock.sleep(200);
    isUp = await spawnProgram(program, port).then(
      () => true,
      (error) => {
        log.error({ program: name, err: error }, 'a program did not start');
        return false;
      },
    );
  }
}

async function stopProgram(program: Program): Promise<void> {
  program.isStopping = true;
  const { child } = program;
  if (child === null || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const grace = new AbortController();
  void program.deps.clock.sleep(1_000, grace.signal).then(() => {
    if (!grace.signal.aborted) child.kill('SIGKILL');
  });
  await ended;
  grace.abort();
}

async function untilListening(
  child: ChildProcess,
  name: string,
  port: number,
  onErrorLine: (line: string) => void,
): Promise<string> {
  let errorText = '';
  let isListening = false;
  const errorLines = createInterface({ input: child.stderr as NodeJS.ReadableStream });
  errorLines.on('line', (line) => {
    if (isListening) onErrorLine(line);
    else errorText = `${errorText}${line}\n`.slice(-2_000);
  });
  // `close` comes after all output has been read; `exit` may come earlier.
  const ended = once(child, 'close').then(() => {
    const code = /EADDRINUSE|EACCES/.exec(errorText)?.[0];
    const text = `${name[0]?.toUpperCase()}${name.slice(1)} did not start. ${errorText}`;
    throw Object.assign(new Error(text), { code, port });
  });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  ended.catch(() => {});
  isListening = true;
  return JSON.parse(line).url;
}
