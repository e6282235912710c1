import { type Role, readConfig } from '#config.ts';
import { type ReadyConfig, startProcess } from '#main.ts';
import { openLog } from './log.ts';
import { answerMetrics } from './process-metrics.ts';
import { type FailedMessage, readyMessage, type StopMessage } from './supervisor.ts';

// One of several processes of the service. The supervisor has prepared the database, and passes
// what it decided in the environment.

const config = readConfig(process.env) as ReadyConfig;
const log = openLog(config);
const running = await startProcess(config, process.argv[2] as Role, log).catch(reportFailure);
answerMetrics(running.deps.metrics.registry);

let stopping = false;
async function stop(graceMilliseconds?: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  await running.stop(graceMilliseconds);
  process.exit(0);
}
process.on('message', ({ graceMilliseconds }: Partial<StopMessage>) => {
  if (graceMilliseconds !== undefined) void stop(graceMilliseconds);
});
// Ctrl-C, or the end of a terminal, signals the whole group. The supervisor decides when we stop.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.on('SIGTERM', () => void stop());
// Without the supervisor nothing else would ever stop this process.
process.on('disconnect', () => void stop());
process.send?.(readyMessage);

/** Reports the error to the supervisor, which shows it to the operator. */
async function reportFailure(error: Error & { code?: string; port?: number }): Promise<never> {
  const { message, code, port } = error;
  const failed = { message, ...(code !== undefined && { code }), ...(port && { port }) };
  await new Promise<void>((sent) => {
    if (process.send) process.send({ failed } satisfies FailedMessage, () => sent());
    else sent();
  });
  process.exit(1);
}
