import { type Role, readConfig } from '#config.ts';
import { type ReadyConfig, startProcess } from '#main.ts';
import { openLog } from './log.ts';
import { answerMetrics } from './process-metrics.ts';
import { type FailedMessage, readyMessage, type StopMessage } from './supervisor.ts';

// One of several processes of the service. The supervisor has prepared the database, and passes its
// decisions in the environment.

const config = readConfig(process.env) as ReadyConfig;
const log = openLog(config);

// The supervisor may tell this process to stop before it serves. A cluster process loses messages
// that arrive before it has a listener.
const told = Promise.withResolvers<number | undefined>();
process.on('message', ({ graceMilliseconds }: Partial<StopMessage>) => {
  if (graceMilliseconds !== undefined) told.resolve(graceMilliseconds);
});
// Ctrl-C, or closing the terminal, signals the whole group. The supervisor decides when we stop.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.on('SIGTERM', () => told.resolve(undefined));
// If the supervisor is gone, nothing else stops this process.
process.on('disconnect', () => told.resolve(undefined));

const running = await startProcess(config, process.argv[2] as Role, log).catch(reportFailure);
answerMetrics(running.deps.metrics.registry);
process.send?.(readyMessage);
await running.stop(await told.promise);
process.exit(0);

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
