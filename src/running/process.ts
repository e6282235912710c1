import { AggregatorRegistry } from 'prom-client';
import { type Role, readConfig } from '../config.ts';
import { type ReadyConfig, startProcess } from '../main.ts';
import { openLog } from './log.ts';
import { type FailedMessage, readyMessage, stopMessage } from './supervisor.ts';

// One of several processes of the service. The supervisor has prepared the database and hands
// everything that it decided over in the environment.

const config = readConfig(process.env) as ReadyConfig;
const log = openLog(config.logLevel);
const running = await startProcess(config, process.argv[2] as Role, log).catch(explain);
// Only where one was made does the library answer when the supervisor asks for the metrics.
new AggregatorRegistry();
AggregatorRegistry.setRegistries(running.deps.metrics.registry);

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await running.stop();
  process.exit(0);
}
process.on('message', (message) => {
  if (message === stopMessage) void stop();
});
// A terminal's Ctrl-C, or its end, reaches the whole group: the supervisor says when it is our turn.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.on('SIGTERM', () => void stop());
// Without its supervisor nobody would ever end it.
process.on('disconnect', () => void stop());
process.send?.(readyMessage);

/** The supervisor knows whom to tell what is wrong. */
async function explain(error: Error & { code?: string; port?: number }): Promise<never> {
  const { message, code, port } = error;
  const failed = { message, ...(code !== undefined && { code }), ...(port && { port }) };
  await new Promise<void>((sent) => {
    if (process.send) process.send({ failed } satisfies FailedMessage, () => sent());
    else sent();
  });
  process.exit(1);
}
