import { readdirSync, readFileSync } from 'node:fs';

// The processor time of programs, as Linux counts it. Other systems do not report it.

/** Clock ticks per second, in which Linux counts the time of processes that have ended. */
const ticks = 100;

/** The time that a process has used so far with all its threads, in milliseconds. */
export function processorMilliseconds(pid: number): number {
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8');
    nanoseconds += Number(stat.split(' ')[0]);
  }
  return nanoseconds / 1e6;
}

/** The time that this process has used so far, in milliseconds. */
export function ownMilliseconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/**
 * The time of all processes of a PostgreSQL server. Processes that have ended count too, because an
 * autovacuum worker lives for less than a second. A process in `without` counts only after it has
 * ended.
 */
export function serverMilliseconds(postmaster: number, without: number[]): number {
  const running = childrenOf(postmaster).filter((pid) => !without.includes(pid));
  let milliseconds = endedMilliseconds(postmaster);
  for (const pid of running) {
    try {
      milliseconds += processorMilliseconds(pid);
    } catch {
      // A process has ended since it was listed.
      return serverMilliseconds(postmaster, without);
    }
  }
  return milliseconds;
}

/** The time of the children of a process that have ended. */
function endedMilliseconds(pid: number): number {
  // The second field is the name in brackets. User and system time of children are fields 16 and
  // 17.
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[13]) + Number(fields[14])) * 1_000) / ticks;
}

/** The time of the running programs that this process has started, except those in `without`. */
export function childrenMilliseconds(without: number[]): number {
  const children = childrenOf(process.pid).filter((pid) => !without.includes(pid));
  return children.reduce((sum, pid) => sum + processorMilliseconds(pid), 0);
}

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === '' ? [] : children.split(' ').map(Number);
}
