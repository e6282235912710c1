import { pino } from 'pino';
import type { Logger } from './shared/logger.ts';

/**
 * One JSON object a line, to a file or standard output. What may be logged is chosen where it is
 * logged; headers, bodies and addresses with a payment token never are.
 */
export function openLog(level: string, file?: string): Logger & { flushSync(): void } {
  const destination = pino.destination({ dest: file ?? 1, sync: false, minLength: 0, mode: 0o600 });
  const log = pino(
    { level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    destination,
  );
  return Object.assign(log, { flushSync: () => destination.flushSync() });
}
