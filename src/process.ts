import { AggregatorRegistry } from 'prom-client';
import { readConfig } from './config.ts';
import { openLog } from './log.ts';
import { type ReadyConfig, type Role, startProcess } from './main.ts';
import { readyMessage, stopMessage } from './supervisor.ts';

// One of several processes of the service. The supervisor has prepared the database and hands
// everything that it decided over in the environment.

const config = readConfig(process.env) as ReadyConfig;
const log = openLog(config.logLevel);
const running = await startProcess(config, process.argv[2] as Role, log);
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
// A terminal's Ctrl-C reaches the whole group: the supervisor says when it is our turn.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => void stop());
// Without its supervisor nobody would ever end it.
process.on('disconnect', () => void stop());
process.send?.(readyMessage);
