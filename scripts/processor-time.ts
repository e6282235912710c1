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
  const stat = fs.readFileSync('/proc/self/stat', 'latin1');
  // The second field is the program's name in brackets, which may contain anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // utime, stime, cutime and cstime.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks / ticksPerSecond;
}
