import { pino } from 'pino';
import { readConfig } from '#config.ts';
import { startProcess } from '#main.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';

// The whole service in one process, with rate limits in memory as with the embedded database. It
// tells its parent when it is ready and ends with it. It approves the refund whose id the parent
// sends.

const config = readConfig(process.env);
const { databaseUrl, gateways } = config;
if (databaseUrl === null || gateways === null)
  throw new Error('a database and a gateway are needed');
const log = pino({ level: 'warn' });
const { deps } = await startProcess(
  { ...config, databaseUrl, gateways, rateLimitStore: 'memory' },
  'all',
  log,
);
process.on('message', async (id: string) => {
  const { status } = await approveRefund(deps, 'bench', id);
  process.send?.({ id, status });
});
process.send?.('ready');
process.on('disconnect', () => process.exit());
