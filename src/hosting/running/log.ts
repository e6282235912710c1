import { pino } from 'pino';
import type { Config } from '#config.ts';
import { droppedLogLines } from '#platform/http/metrics.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { currentTraceId } from '#platform/tracing/trace.ts';
import { openLines } from './write-lines.ts';

/**
 * Writes one JSON object per line, to a file or to standard output. Each call chooses its fields.
 * Headers, bodies and URLs with a payment token are never logged.
 */
export function openLog(
  { logLevel: level, traces }: Pick<Config, 'logLevel' | 'traces'>,
  file?: string,
): Logger & { settled(): Promise<void> } {
  const lines = openLines(file, (count) => droppedLogLines.inc(count));
  const log = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      ...(traces && { mixin: currentTraceId }),
    },
    lines,
  );
  return Object.assign(log, { settled: lines.settled });
}

/**
 * Logs only members of an error that cannot contain data. PostgreSQL puts the failing row into
 * `detail`, and the driver attaches the whole connection to some errors.
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
