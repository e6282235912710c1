import { findKeysAndClocks } from '#merchants/integrations/callback-key.ts';
import { lockLiveIntegration } from '#merchants/integrations/lock-integration.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import type { EventDeps } from './choose-events.ts';
import { callbackHeaders } from './delivery/callback-headers.ts';
import { explainBadNotifyUrl } from './delivery/destination.ts';
import { explainFailure } from './delivery/explain-failure.ts';
import type { Exchange, SendCallback } from './delivery/send-callback.ts';

export type TestCallbackDeps = OperatorDeps &
  EventDeps & { sealing: Sealing; sendCallback: SendCallback };

/** How much of an answer a person is shown. */
const shownBytesMax = 1_024;

/**
 * Sends one test callback to a URL, signed like a real one with the integration's key, and returns
 * the answer. The test callback is not stored, is not retried and does not count in the statistics.
 * No receiver can mistake it for a payment: it reports a cancelled order under a reference that no
 * order has, and the operator cannot choose any of its contents (decision 0033).
 */
export async function sendTestCallback(
  deps: TestCallbackDeps,
  operator: string,
  wanted: { id: string; url: string },
) {
  const url = URL.parse(wanted.url);
  const problem = url ? explainBadNotifyUrl(url, deps.callbackAllow) : 'must be an https URL';
  if (url === null || problem !== null) throw new OperatorError(`The address ${problem}.`);
  const id = deps.random.uuid();
  const now = deps.clock.now();
  const payload = testPayload(id);
  // The audit row is written before anything is sent. It leaves out the query, which may contain a
  // secret.
  const key = await operate(deps, operator, 'integrations test-callback', async (db) => {
    const { id: integration_id, merchant_id } = await lockLiveIntegration(db, wanted.id);
    const of = { integration_ids: [integration_id], merchant_ids: [], now: timestamp(now) };
    const { keys } = await findKeysAndClocks(deps, db, of);
    const details = { callback_id: id, address: url.origin + url.pathname };
    const result = keys.get(integration_id);
    return { subject_id: integration_id, merchant_id, details, result };
  });
  if (key === undefined) {
    throw new OperatorError('This integration has no signing key in force. Issue one first.');
  }
  const headers = callbackHeaders({ id, payload, number: 1, key, now });
  const exchange = await deps.sendCallback({ url: url.href, headers, body: payload });
  return { id, url: url.href, payload: payload.toString('utf8'), ...present(exchange) };
}

function testPayload(id: string): Buffer {
  return Buffer.from(
    JSON.stringify({
      status: 'cancelled',
      amount: 100,
      currency: 'ZAR',
      client_reference_id: `test-callback-${id}`,
      number_of_payments: 1,
      test: true,
    }),
  );
}

function present(exchange: Exchange) {
  const { delivered, reason, status, body, body_bytes, timings } = exchange;
  return {
    delivered,
    reason,
    summary: explainTest(exchange),
    response_status: status,
    response_body: body?.subarray(0, shownBytesMax).toString('utf8') ?? null,
    response_body_bytes: body_bytes,
    milliseconds: timings.total ?? null,
  };
}

export function explainTest({
  delivered,
  status,
  reason,
}: Pick<Exchange, 'delivered' | 'status' | 'reason'>): string {
  if (delivered) return 'Your server accepted the test callback.';
  const failure = explainFailure(reason);
  if (failure !== null) return failure;
  if (status === null) return `No answer came (${reason}).`;
  if (status >= 300 && status < 400) {
    return `Your server answered ${status}. Redirects are not followed: use the address that it leads to.`;
  }
  if (status === 401 || status === 403 || status === 400) {
    return `Your server refused it with ${status}. If it verifies the signature, compare its signing key with this integration's. It must not require a login.`;
  }
  if (status === 404 || status === 422) {
    return `Your server answered ${status}. That is right if it verified the signature and did not find the order: this one does not exist. Otherwise check the path.`;
  }
  return `Your server answered ${status}. A callback counts as delivered only if the answer is 2xx.`;
}
