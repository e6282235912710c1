import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

/**
 * Starts a separate program beside the service, with its own origin. The program prints where it
 * listens as one line of JSON. What it writes to standard error goes to our log. If it dies, it is
 * started again at the same port.
 */
export async function startProgram(
  deps: { clock: Clock; log: Logger },
  options: {
    /** As in a sentence: "the test gateway". */
    name: string;
    file: string;
    port: number;
    env(port: number): NodeJS.ProcessEnv;
  },
): Promise<{ url: string; stop(): Promise<void> }> {
  const { name, file, env } = options;
  const log = deps.log;
  let stopping = false;
  let child: ChildProcess;

  const start = async (port: number): Promise<string> => {
    child = spawn(process.execPath, [file], {
      env: env(port),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // Ctrl-C in a terminal must not reach it: it stops after the processes that use it.
      detached: true,
    });
    const url = await untilListening(child, name, port, (line) =>
      log.warn({ program: name, line }, 'a program wrote to standard error'),
    );
    // From now on it must not keep us alive. Until now it had to, or its error would be lost.
    child.unref();
    child.channel?.unref();
    return url;
  };

  /** A program whose parent was killed ends by itself, but may still hold the port for a moment. */
  const startAfterOrphan = async (): Promise<string> => {
    for (let retries = 0; ; retries += 1) {
      try {
        return await start(options.port);
      } catch (error) {
        if ((error as { code?: string }).code !== 'EADDRINUSE' || retries >= 15) throw error;
        await deps.clock.sleep(200);
      }
    }
  };

  const url = await startAfterOrphan();
  const port = Number(new URL(url).port);
  const watch = async () => {
    let isUp = true;
    while (!stopping) {
      if (isUp) await once(child, 'exit');
      if (stopping) return;
      log.error({ program: name }, 'a program died and is started again');
      await deps.clock.sleep(200);
      isUp = await start(port).then(
        () => true,
        (error) => {
          log.error({ program: name, err: error }, 'a program did not start');
          return false;
        },
      );
    }
  };
  void watch();

  return {
    url,
    async stop() {
      stopping = true;
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      const grace = new AbortController();
      void deps.clock.sleep(1_000, grace.signal).then(() => {
        if (!grace.signal.aborted) child.kill('SIGKILL');
      });
      await ended;
      grace.abort();
    },
  };
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
  // `close` comes after all output was read, `exit` may come before.
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
