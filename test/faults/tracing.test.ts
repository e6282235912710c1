import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { pino } from 'pino';
import { currentTraceId } from '#platform/tracing/trace.ts';
import { addPerson, ask, openConsole } from '../support/console.ts';
import { request } from '../support/http.ts';
import { type Paying, startPaying } from '../support/payments.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { checkoutBody, sign } from '../support/service.ts';
import { until } from '../support/until.ts';

// A collector that takes OTLP over HTTP, on loopback. The service posts its spans there.

type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: { stringValue?: string; intValue?: string } }[];
  links: { traceId: string; spanId: string }[];
};

let collector: Receiver;
let paying: Paying;
let baseUrl: string;
const lines: string[] = [];
before(async () => {
  collector = await startReceiver();
  const log = pino({ mixin: currentTraceId }, { write: (line: string) => void lines.push(line) });
  paying = await startPaying({
    log,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/otel`,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20x,x-tenant=a=b',
      OTEL_SERVICE_NAME: 'tranche-test',
    },
  });
  baseUrl = await paying.service.app.listen({ host: '127.0.0.1', port: 0 });
});
after(async () => {
  await paying.close();
  await collector.close();
});

const spans = (): Span[] =>
  collector.received.flatMap(({ raw }) => {
    const { resourceSpans } = JSON.parse(raw.toString());
    return resourceSpans[0].scopeSpans[0].spans;
  });

/** Uses a real connection, because an injected request would share the test's own context. */
async function create(headers: Record<string, string> = {}): Promise<string> {
  const { client_secret, signing_key } = paying.account;
  const body = JSON.stringify(checkoutBody({ notify_url: `${paying.receiver.url}/notify` }));
  const answer = await request(`${baseUrl}/api/checkouts`, {
    method: 'POST',
    body,
    headers: {
      authorization: `Bearer ${client_secret}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'x-signature': sign(signing_key, body),
      ...headers,
    },
  });
  assert.equal(answer.status, 200);
  return answer.body.data.id;
}

const ofTrace = (traceId: string) => spans().filter((span) => span.traceId === traceId);

/** The names from a span up to the first span of its trace. */
function pathOf(span: Span): string[] {
  const parent = spans().find(({ spanId }) => spanId === span.parentSpanId);
  return [span.name, ...(parent ? pathOf(parent) : [])];
}

test('one trace of a checkout has its requests, statements, gateway calls and callback', async () => {
  const id = await create();
  const { url } = paying.open(id);
  const token = url.split('/').at(-1) ?? '';
  const cardToken = await paying.gateway.tokenFor('4242424242424242');
  const body = JSON.stringify({ number_of_payments: 1, card_token: cardToken, consent: null });
  const paid = await request(`${baseUrl}/pay/${token}/pay`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
  });
  assert.equal(paid.body.status, 'successful', JSON.stringify(paid.body));
  const traceId = id.replaceAll('-', '');
  const named = (name: string) => ofTrace(traceId).find((span) => span.name === name);
  const way = ['POST', 'callback', 'payment', 'POST /pay/:token/pay', 'POST /api/checkouts'];
  // A span that ends after the answer is exported later than the span of its request.
  await until('the spans', () => way.every(named));
  const [pay, first] = [named('POST /pay/:token/pay'), named('POST /api/checkouts')];
  assert.equal(first?.parentSpanId, undefined);
  assert.equal(pay?.parentSpanId, first?.spanId);
  const delivered = named('POST');
  assert.ok(delivered);
  assert.deepEqual(pathOf(delivered), way);
  const held = named('gateway begin');
  assert.ok(held);
  assert.deepEqual(pathOf(held), ['gateway begin', ...way.slice(2)]);
  const commit = ofTrace(traceId).find(
    (span) => span.name === 'commit' && span.parentSpanId === first?.spanId,
  );
  assert.ok(commit, 'the shared commit is a part of each request in it');
  assert.ok(named('select checkouts'));
  // The receiver can continue the trace from the span that called it.
  const [received] = paying.receiver.at('/notify');
  const sent = ofTrace(traceId).find(({ name }) => name === 'callback');
  assert.equal(received?.headers.traceparent, `00-${traceId}-${sent?.spanId}-01`);
  for (const { startTimeUnixNano, endTimeUnixNano } of ofTrace(traceId)) {
    assert.ok(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano));
  }
  const line = lines
    .map((text) => JSON.parse(text))
    .find(({ msg, route }) => msg === 'request' && route === '/pay/:token/pay');
  assert.equal(line.trace_id, traceId);
  const [post] = collector.received;
  assert.equal(post?.path, '/otel/v1/traces');
  assert.equal(post?.headers.authorization, 'Basic%20x');
  assert.equal(post?.headers['x-tenant'], 'a=b');
  assert.match(String(post?.raw), /"service.name","value":\{"stringValue":"tranche-test"\}/);
  // The spans contain no secret, and nothing that identifies a shopper.
  const { client_secret, signing_key } = paying.account;
  const exported = collector.received.map(({ raw }) => raw.toString()).join();
  const { checkout } = checkoutBody();
  for (const secret of [
    ...[client_secret, signing_key, token, cardToken, checkout.customer.email],
    ...[checkout.client_reference_id, paying.receiver.url, collector.url],
  ]) {
    assert.ok(!exported.includes(secret), secret);
  }
});

test('the console names the trace of a checkout by the id that was exported', async () => {
  const id = await create();
  const exported = await until('the spans', () => ofTrace(id.replaceAll('-', ''))[0]);
  const app = await openConsole(paying.service);
  const person = await addPerson(paying.service, { roles: ['viewer'] });
  const { deps } = paying.service;
  const { status, body } = await ask({ app, deps }, person, 'GET', `/api/checkouts/${id}`);
  await app.close();
  assert.deepEqual([status, body.trace_id], [200, exported.traceId]);
});

test("a caller's trace continues, with a link to the checkout's trace, and its flag decides nothing", async () => {
  const callers = '4bf92f3577b34da6a3ce929d0e0e4736';
  const id = await create({ traceparent: `00-${callers}-00f067aa0ba902b7-01` });
  const traceId = id.replaceAll('-', '');
  const first = await until('the spans', () =>
    ofTrace(callers).find(({ name }) => name === 'POST /api/checkouts'),
  );
  assert.equal(first.parentSpanId, '00f067aa0ba902b7');
  const own = await until('the span of its own', () => ofTrace(traceId)[0]);
  assert.equal(own.name, 'checkout');
  assert.deepEqual(first.links, [{ traceId, spanId: own.spanId }]);
  assert.deepEqual(own.links, [{ traceId: callers, spanId: first.spanId }]);

  const silent = 'aaf92f3577b34da6a3ce929d0e0e4736';
  await create({ traceparent: `00-${silent}-00f067aa0ba902b7-00` });
  await until('the spans of a caller that asks for none', () => ofTrace(silent)[0]);
  // This header is not valid, so the trace begins here.
  const invalid = await create({ traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` });
  await until('the last request', () => ofTrace(invalid.replaceAll('-', ''))[0]);
});

test('a collector that is away stops nothing', async () => {
  collector.answer = () => ({ status: 503 });
  await create();
  await until('the warning', () => lines.some((line) => line.includes('spans could not be')));
});
