import fs from 'node:fs';

/** Linux reports processor time in hundredths of a second, whatever its kernel uses. */
const ticksPerSecond = 100;

/**
 * The processor time of this process and of its children that have ended, user and system. Only
 * Linux reports the time of children, so elsewhere it is the time of this process alone.
 */
export function readProcessorSeconds(): number {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }
  return readProcess('self').seconds;
}

/**
 * The processor time of a running program and of all processes below it, with their children that
 * have ended. Null if the program has ended, or if the system does not report it.
 */
export function readProgramSeconds(pid: number | undefined): number | null {
  if (process.platform !== 'linux') return null;
  const running = fs
    .readdirSync('/proc')
    .map(Number)
    .filter((each) => each > 0)
    .flatMap((each) => {
      try {
        return [{ pid: each, ...readProcess(each) }];
      } catch {
        // The process has ended in the meantime.
        return [];
      }
    });
  const sum = (processes: typeof running): number => {
    if (processes.length === 0) return 0;
    const seconds = processes.reduce((total, each) => total + each.seconds, 0);
    const pids = processes.map((each) => each.pid);
    return seconds + sum(running.filter(({ parent }) => pids.includes(parent)));
  };
  const program = running.filter((each) => each.pid === pid);
  return program.length === 0 ? null : sum(program);
}

function readProcess(pid: number | 'self'): { parent: number; seconds: number } {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The second field is the program's name in brackets, which may contain anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // utime, stime, cutime and cstime.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { parent: Number(fields[1]), seconds: ticks / ticksPerSecond };
}
