import { spawn } from 'node:child_process';
import { freePorts } from '#platform/shared/free-ports.ts';
import { has, type Request } from './load.ts';
import { untilReady } from './service.ts';

/**
 * Starts stripe-mock, a server in Go that checks requests against Stripe's description and stores
 * nothing (`go install github.com/stripe/stripe-mock@latest`). Returns null if it is not installed.
 */
export async function startStripeMock(): Promise<{ request: Request; stop(): void } | null> {
  if (!has('stripe-mock')) return null;
  const [port] = await freePorts(1);
  const child = spawn('stripe-mock', ['-http-port', String(port)], { stdio: 'ignore' });
  const request: Request = {
    url: `http://127.0.0.1:${port}/v1/payment_intents`,
    method: 'POST',
    headers: {
      authorization: 'Bearer sk_test_bench',
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'amount=150000&currency=zar&capture_method=manual&metadata[order]=order-1001',
  };
  await untilReady(child, request.url, request as RequestInit);
  return { request, stop: () => void child.kill() };
}
