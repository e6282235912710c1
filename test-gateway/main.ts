import { startTestGateway } from './gateway.ts';

// Runs the test gateway as a program: `node test-gateway/main.ts`, with settings from the
// environment. The program prints the gateway's URL as one line of JSON. It stops at a signal, or
// once the process that started it has died.

const settings = {
  port: Number(process.env.GATEWAY_PORT ?? 3001),
  host: process.env.GATEWAY_HOST ?? '127.0.0.1',
  stateFile: process.env.GATEWAY_STATE_FILE ?? ':memory:',
  secretKey: process.env.GATEWAY_SECRET_KEY ?? 'sk_test_tranche',
  publishableKey: process.env.GATEWAY_PUBLISHABLE_KEY ?? 'pk_test_tranche',
  pageOrigins: (process.env.GATEWAY_PAGE_ORIGINS ?? 'http://127.0.0.1:3000,http://localhost:3000')
    .split(',')
    .filter((origin) => origin !== ''),
  account: { amountMin: Number(process.env.GATEWAY_AMOUNT_MIN ?? 1000) },
  ...(process.env.GATEWAY_WEBHOOK_URL && {
    webhook: {
      url: process.env.GATEWAY_WEBHOOK_URL,
      secret: process.env.GATEWAY_WEBHOOK_SECRET ?? 'whsec_test_tranche',
      protocol:
        process.env.GATEWAY_PROTOCOL === 'hyperswitch'
          ? ('hyperswitch' as const)
          : ('stripe' as const),
    },
  }),
  ...(process.env.GATEWAY_PUBLIC_URL && { publicUrl: process.env.GATEWAY_PUBLIC_URL }),
};

const gateway = await startTestGateway(settings);
process.stdout.write(`${JSON.stringify({ url: gateway.url })}\n`);

const stop = () => void gateway.close().then(() => process.exit(0));
process.once('SIGINT', stop);
process.once('SIGTERM', stop);
// The process that started this program has died and can no longer stop it.
process.once('disconnect', stop);
