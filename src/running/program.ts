import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';

/**
 * A program of its own beside the service, on an origin of its own. It says where it listens in one
 * line of JSON, what it complains about goes to our log, and when it dies it is started again at
 * the same port.
 */
export async function startProgram(
  deps: { clock: Clock; log: Logger },
  options: {
    /** In a sentence: "the test gateway". */
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
      // A terminal's Ctrl-C is not for it: it ends after those who may still be using it.
      detached: true,
    });
    const url = await untilListening(child, name, port, (line) =>
      log.warn({ program: name, line }, 'a program complains'),
    );
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
    let isUp = true;
    while (!stopping) {
      if (isUp) await once(child, 'exit');
      if (stopping) return;
      log.error({ program: name }, 'a program died and is started again');
      await deps.clock.sleep(200);
      isUp = await start(port).then(
        () => true,
        (error) => {
          log.error({ program: name, err: error }, 'it does not start');
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
      const patience = new AbortController();
      void deps.clock.sleep(1_000, patience.signal).then(() => {
        if (!patience.signal.aborted) child.kill('SIGKILL');
      });
      await ended;
      patience.abort();
    },
  };
}

async function untilListening(
  child: ChildProcess,
  name: string,
  port: number,
  complain: (line: string) => void,
): Promise<string> {
  let complaint = '';
  let isListening = false;
  const complaints = createInterface({ input: child.stderr as NodeJS.ReadableStream });
  complaints.on('line', (line) => {
    if (isListening) complain(line);
    else complaint = `${complaint}${line}\n`.slice(-2_000);
  });
  // Once all that it said was read, too.
  const ended = once(child, 'close').then(() => {
    const code = /EADDRINUSE|EACCES/.exec(complaint)?.[0];
    const text = `${name[0]?.toUpperCase()}${name.slice(1)} did not start. ${complaint}`;
    throw Object.assign(new Error(text), { code, port });
  });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  ended.catch(() => {});
  isListening = true;
  return JSON.parse(line).url;
}
