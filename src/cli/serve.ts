import { readConfig, roles } from '#config.ts';
import { openLog } from '#hosting/running/log.ts';
import { command, oneOf, UsageError } from './command.ts';
import { explainStart, settlePort, untilStopped } from './running.ts';

export const serve = command({
  name: 'serve',
  usage: ['[--role web|worker|all] [--processes N]'],
  help: `Runs the service until it is stopped, and logs JSON lines to standard output. Settings come
from the environment; wrong settings are listed all at once.

With DATABASE_URL it uses that PostgreSQL (15 or newer), otherwise the embedded one in DATA_DIR.
Migrations are applied first; nodes that start together wait for each other.

  DATABASE_URL=postgres://… MASTER_KEY=… tranche serve --processes 2`,
  json: false,
  options: {
    role: { type: 'string', default: 'all' },
    processes: { type: 'string', default: '1' },
  },
  async run({ values, env }) {
    const role = oneOf(values.role, roles, 'role');
    if (!/^[1-9]\d?$/.test(values.processes)) {
      throw new UsageError(`--processes is "${values.processes}" and must be from 1 to 99.`);
    }
    const config = await settlePort(readConfig(env), env);
    const log = openLog(config);
    const stopped = untilStopped();
    // The service is loaded only here, so that other commands start quickly.
    const { startService, StoppedEarly } = await import('#hosting/running/supervisor.ts');
    const running = await startService(config, {
      role,
      processes: Number(values.processes),
      log,
      stopped,
    }).catch((error) => {
      if (error instanceof StoppedEarly) return null;
      throw explainStart(error);
    });
    if (running === null) {
      log.info({}, 'stopped before it was ready');
      await log.settled();
      return;
    }
    log.info(
      {
        base_url: config.baseUrl,
        console_url: config.console.url,
        merchant_console_url: config.console.merchantUrl,
        metrics_url: running.metricsUrl,
        role,
      },
      'the service is ready',
    );
    await stopped;
    log.info({}, 'stopping');
    await running.stop();
    log.info({}, 'stopped');
    await log.settled();
  },
});
