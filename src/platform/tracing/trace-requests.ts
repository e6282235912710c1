import type { FastifyInstance } from 'fastify';
import { endSpan, type Span, type Tracer } from './trace.ts';

/** Records a span for each request, without its URL or body: both can identify a shopper. */
export function traceRequests(app: FastifyInstance, tracer: Tracer): void {
  const spans = new WeakMap<object, Span>();
  app.addHook('onRequest', async (request) => {
    const { traceparent } = request.headers;
    const isOne = typeof traceparent === 'string';
    spans.set(request, tracer.beginRequest(isOne ? traceparent : undefined));
  });
  app.addHook('onResponse', async (request, reply) => {
    const span = spans.get(request);
    if (!span) return;
    const route = request.routeOptions.url ?? 'unknown';
    span.name = `${request.method} ${route}`;
    span.attributes = {
      'http.request.method': request.method,
      'http.route': route,
      'http.response.status_code': reply.statusCode,
      'tranche.request_id': request.id,
    };
    span.hasFailed = reply.statusCode >= 500;
    endSpan(span);
  });
}
