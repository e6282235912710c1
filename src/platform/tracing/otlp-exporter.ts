import { hostname } from 'node:os';
import { request } from 'undici';
import { type Clock, within } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Span, SpanKind } from './trace.ts';

export type TraceSettings = {
  /** The collector's base address; spans go to `/v1/traces` below it. */
  endpoint: string;
  headers: Record<string, string>;
  serviceName: string;
  ratio: number;
};

/** Spans wait for this long, so that many share a request. */
const pauseMilliseconds = 1_000;

const batchSize = 500;

/** While the collector does not answer, spans beyond this number are dropped. */
const queuedMax = 10_000;

const timeoutMilliseconds = 10_000;

/** An unreachable collector is reported at most this often. */
const reportMilliseconds = 60_000;

const kinds: Record<SpanKind, number> = { internal: 1, server: 2, client: 3 };

/**
 * Sends spans to a collector by OTLP over HTTP, as JSON. Spans are dropped if the collector does
 * not accept them: the service never waits for it.
 */
export function createOtlpExporter(
  { clock, log }: { clock: Clock; log: Logger },
  settings: TraceSettings,
): { export(spans: Span[]): void; close(): Promise<void> } {
  const url = `${settings.endpoint.replace(/\/$/, '')}/v1/traces`;
  const resource = {
    attributes: attributesOf({
      'service.name': settings.serviceName,
      'host.name': hostname(),
      'process.pid': process.pid,
    }),
  };
  const queue: Span[] = [];
  const closing = new AbortController();
  let sending: Promise<void> | null = null;
  let dropped = 0;
  let reportedAt = Number.NEGATIVE_INFINITY;

  async function send(): Promise<void> {
    await clock.sleep(pauseMilliseconds, closing.signal);
    while (queue.length > 0) {
      const spans = queue.splice(0, batchSize);
      try {
        await post(spans);
      } catch (error) {
        dropped += spans.length;
        report(error);
      }
    }
  }

  async function post(spans: Span[]): Promise<void> {
    const scopeSpans = [{ scope: { name: 'tranche' }, spans: spans.map(presentSpan) }];
    const answer = await request(url, {
      method: 'POST',
      headers: { ...settings.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] }),
      headersTimeout: timeoutMilliseconds,
      bodyTimeout: timeoutMilliseconds,
    });
    await answer.body.dump();
    if (answer.statusCode >= 300) {
      throw new Error(`the trace collector answered ${answer.statusCode}`);
    }
  }

  function report(error: unknown): void {
    const now = clock.monotonic();
    if (now - reportedAt < reportMilliseconds) return;
    reportedAt = now;
    log.warn({ err: error, dropped }, 'spans could not be exported');
  }

  return {
    export(spans) {
      if (queue.length + spans.length > queuedMax) {
        dropped += spans.length;
        return;
      }
      queue.push(...spans);
      sending ??= send().finally(() => {
        sending = null;
      });
    },
    async close() {
      closing.abort();
      if (sending) await within(clock, pauseMilliseconds, sending);
    },
  };
}

/** The protocol's JSON has ids in hex, and times as decimal strings of nanoseconds. */
function presentSpan(span: Span): object {
  const { parent } = span;
  const parentId = typeof parent === 'string' ? parent : parent?.id;
  return {
    traceId: span.trace.id,
    spanId: span.id,
    ...(parentId !== undefined && { parentSpanId: parentId }),
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: nanoseconds(span.startedAt),
    endTimeUnixNano: nanoseconds(span.endedAt),
    attributes: attributesOf(span.attributes),
    links: span.links,
    status: span.hasFailed ? { code: 2 } : {},
  };
}

const nanoseconds = (milliseconds: number) =>
  String(BigInt(Math.round(milliseconds * 1_000)) * 1_000n);

const attributesOf = (attributes: Record<string, string | number>) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { intValue: String(value) },
  }));
