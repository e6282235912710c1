import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

// Every process of a cluster, with its output in a file of its own.

export type Child = {
  name: string;
  pid: number;
  hasExited(): boolean;
  exited: Promise<void>;
  signal(signal: NodeJS.Signals): void;
};

export type Children = {
  folder: string;
  start(name: string, command: string[], env?: NodeJS.ProcessEnv): Child;
  /** Kills what still runs, by process id. */
  killAll(): Promise<void>;
};

export function createChildren(folder: string): Children {
  const running = new Set<Child>();
  return {
    folder,
    start(name, [program = '', ...args], env = {}) {
      const log = fs.openSync(path.join(folder, `${name}.log`), 'a');
      const { PATH, HOME } = process.env;
      const child: ChildProcess = spawn(program, args, {
        env: { PATH, HOME, LC_ALL: 'C.UTF-8', ...env },
        cwd: folder,
        stdio: ['ignore', log, log],
      });
      fs.closeSync(log);
      let hasExited = false;
      const exited = new Promise<void>((resolve) => {
        const end = () => {
          hasExited = true;
          running.delete(one);
          resolve();
        };
        child.once('exit', end);
        child.once('error', end);
      });
      const one: Child = {
        name,
        pid: child.pid ?? 0,
        hasExited: () => hasExited,
        exited,
        signal: (signal) => void child.kill(signal),
      };
      running.add(one);
      return one;
    },
    async killAll() {
      const all = [...running];
      for (const child of all) {
        child.signal('SIGCONT');
        child.signal('SIGKILL');
      }
      await Promise.all(all.map(({ exited }) => exited));
    },
  };
}
