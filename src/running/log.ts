import { pino } from 'pino';
import type { Logger } from '../shared/logger.ts';

/**
 * One JSON object a line, to a file or standard output. What may be logged is chosen where it is
 * logged; headers, bodies and addresses with a payment token never are.
 */
export function openLog(level: string, file?: string): Logger & { flushSync(): void } {
  const destination = pino.destination({ dest: file ?? 1, sync: false, minLength: 0, mode: 0o600 });
  const log = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
    },
    destination,
  );
  return Object.assign(log, { flushSync: () => destination.flushSync() });
}

/**
 * Of an error only what cannot hold data: PostgreSQL's have the failing row in `detail`, and on
 * some of them the driver hangs the whole connection.
 */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, table, constraint } = error as {
    code?: string;
    table?: string;
    constraint?: string;
  };
  return {
    type: error.constructor.name,
    message: error.message,
    code,
    table,
    constraint,
    stack: error.stack,
    ...(error.cause !== undefined && { cause: describeError(error.cause) }),
  };
}
