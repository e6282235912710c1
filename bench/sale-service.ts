import { pino } from 'pino';
import { readConfig } from '#config.ts';
import { startProcess } from '#main.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';

// The whole service in one process, with rate limits in memory as with the embedded database. It
// tells its parent when it is ready and ends with it. It approves the refund that the parent sends,
// as the console does.

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
process.on('message', async (refund: { merchant_id: string; id: string }) => {
  const { id, status } = await approveRefund(deps, 'bench', refund);
  process.send?.({ id, status });
});
process.send?.('ready');
process.on('disconnect', () => process.exit());
