import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';

// OpenTelemetry spans (decision 0103). The current span travels with the work in an async context,
// as the deadline does. Without a tracer there is no current span, and everything here does
// nothing.
//
// A checkout has a trace of its own, whose id is the checkout's: the requests of its shopper, the
// calls to the gateway and its callbacks can always be found, and no row has to store the id.

export type SpanKind = 'internal' | 'server' | 'client';

type Link = { traceId: string; spanId: string };

export type Span = {
  trace: Trace;
  id: string;
  /** A span of this process, or the id of the caller's span. Null for the first span of a trace. */
  parent: Span | string | null;
  name: string;
  kind: SpanKind;
  /** Milliseconds since 1970. */
  startedAt: number;
  endedAt: number;
  attributes: Record<string, string | number>;
  links: Link[];
  hasFailed: boolean;
};

/** The part of a trace that this process made, from one request or one piece of due work. */
type Trace = {
  id: string;
  /**
   * Whether the spans are exported, if a caller began the trace. Null if the trace began here: then
   * its id decides (`isSampled`).
   */
  isSampled: boolean | null;
  /** The wall clock minus the stopwatch, so that all spans share one time line. */
  offset: number;
  /** Ended spans, until the first span ends. Null afterwards. */
  ended: Span[] | null;
  tracer: Pick<TracerDeps, 'clock' | 'random'> & { export(spans: Span[]): void; ratio: number };
};

export type Tracer = {
  /** Begins the span of a request and makes it the current one. */
  beginRequest(traceparent: string | undefined): Span;
  /** Runs due work of a checkout in the current span or, if there is none, in its own trace. */
  inCheckout<T>(checkout_id: string, name: string, work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

type TracerDeps = { clock: Clock; random: Random };

/** A request has fewer spans than this. The limit bounds the memory that due work may take. */
const spansMax = 500;

const current = new AsyncLocalStorage<Span | undefined>();

export function createTracer(
  { clock, random }: TracerDeps,
  exporter: { export(spans: Span[]): void; close(): Promise<void> },
  /** The share of traces whose spans are exported, from 0 to 1. */
  ratio: number,
): Tracer {
  const tracer = { clock, random, ratio, export: exporter.export };
  const beginTrace = (id: string, isSampled: boolean | null): Trace => ({
    id,
    isSampled,
    offset: clock.now().epochMilliseconds - clock.monotonic(),
    ended: [],
    tracer,
  });
  return {
    beginRequest(traceparent) {
      const remote = parseTraceparent(traceparent);
      const id = remote?.traceId ?? random.bytes(16).toString('hex');
      // A stranger may send the header. Neither its flag nor its id decides whether the spans are
      // exported: otherwise the stranger could hide requests, or flood the collector.
      const drawn = random.bytes(4).readUInt32BE() / 2 ** 32 < ratio;
      const trace = beginTrace(id, remote === null ? null : drawn);
      const span = beginSpan(trace, remote?.spanId ?? null, 'request', 'server');
      current.enterWith(span);
      return span;
    },
    inCheckout(checkout_id, name, work) {
      if (current.getStore()) return inSpan(name, 'internal', work);
      const trace = beginTrace(traceIdOf(checkout_id), null);
      const span = beginSpan(trace, firstSpanIdOf(checkout_id), name, 'internal');
      return runIn(span, work);
    },
    close: exporter.close,
  };
}

function beginSpan(
  trace: Trace,
  parent: Span['parent'],
  name: string,
  kind: SpanKind,
  id = trace.tracer.random.bytes(8).toString('hex'),
): Span {
  const startedAt = trace.offset + trace.tracer.clock.monotonic();
  return {
    trace,
    id,
    parent,
    name,
    kind,
    startedAt,
    endedAt: startedAt,
    attributes: {},
    links: [],
    hasFailed: false,
  };
}

/** Ends a span. The spans of a trace are exported when its first span in this process ends. */
export function endSpan(span: Span): void {
  const { trace } = span;
  const { tracer } = trace;
  span.endedAt = trace.offset + tracer.clock.monotonic();
  if (trace.ended !== null && trace.ended.length < spansMax) trace.ended.push(span);
  if (typeof span.parent === 'object' && span.parent !== null) {
    // This span belongs to work that continued after the answer was sent.
    if (trace.ended === null && isSampled(trace)) tracer.export([span]);
    return;
  }
  const spans = trace.ended ?? [];
  trace.ended = null;
  if (isSampled(trace)) tracer.export(spans);
}

async function runIn<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await current.run(span, work, span);
  } catch (error) {
    span.hasFailed = true;
    throw error;
  } finally {
    endSpan(span);
  }
}

/** Runs work as a part of the current span. Without one there is nothing to record. */
export function inSpan<T>(
  name: string,
  kind: SpanKind,
  work: (span: Span | null) => Promise<T>,
): Promise<T> {
  const parent = current.getStore();
  return parent ? runIn(beginSpan(parent.trace, parent, name, kind), work) : work(null);
}

/** Begins a span below the current one, or returns null. The caller ends it. */
export function beginPart(name: string, kind: SpanKind): Span | null {
  const parent = current.getStore();
  return parent ? beginSpan(parent.trace, parent, name, kind) : null;
}

/**
 * Runs work that serves many requests outside the current span, so that it does not count as part
 * of one request.
 */
export function outsideSpans<T>(work: () => T): T {
  return current.getStore() ? current.run(undefined, work) : work();
}

/** The id of the checkout's trace. */
export const traceIdOf = (checkout_id: string) => checkout_id.replaceAll('-', '').toLowerCase();

/** The span of the request that created the checkout. The second half of a UUID is never zero. */
const firstSpanIdOf = (checkout_id: string) => traceIdOf(checkout_id).slice(16);

/**
 * The current request is about this checkout, so it belongs to the checkout's trace. A request that
 * belongs to its caller's trace gets a link instead.
 */
export function joinCheckout(checkout_id: string): void {
  const first = firstSpan();
  if (!first) return;
  if (first.trace.isSampled === null) {
    first.trace.id = traceIdOf(checkout_id);
    first.parent = firstSpanIdOf(checkout_id);
  } else if (first.links.length === 0) {
    first.links.push({ traceId: traceIdOf(checkout_id), spanId: firstSpanIdOf(checkout_id) });
  }
}

/** The current request creates this checkout, so its span is the first of the checkout's trace. */
export function beginCheckout(checkout_id: string): void {
  const first = firstSpan();
  if (!first) return;
  const { trace } = first;
  if (trace.isSampled === null) {
    trace.id = traceIdOf(checkout_id);
    first.id = firstSpanIdOf(checkout_id);
    first.parent = null;
    return;
  }
  joinCheckout(checkout_id);
  const own = { ...trace, id: traceIdOf(checkout_id), isSampled: null, ended: [] };
  const span = beginSpan(own, null, 'checkout', 'internal', firstSpanIdOf(checkout_id));
  span.links.push({ traceId: trace.id, spanId: first.id });
  endSpan(span);
}

function firstSpan(): Span | undefined {
  let span = current.getStore();
  while (typeof span?.parent === 'object' && span.parent !== null) span = span.parent;
  return span;
}

function isSampled({ id, isSampled, tracer }: Trace): boolean {
  return isSampled ?? Number.parseInt(id.slice(-8), 16) / 2 ** 32 < tracer.ratio;
}

/** The id of the current trace, for log lines. */
export function currentTraceId(): { trace_id: string } | Record<string, never> {
  const span = current.getStore();
  return span ? { trace_id: span.trace.id } : {};
}

/** The W3C Trace Context header for a request that the current work sends. */
export function traceHeaders(): { traceparent: string } | Record<string, never> {
  const span = current.getStore();
  if (!span) return {};
  const flags = isSampled(span.trace) ? '01' : '00';
  return { traceparent: `00-${span.trace.id}-${span.id}-${flags}` };
}

/** Returns null for a header that is missing or invalid, so that the trace begins here. */
export function parseTraceparent(
  header: string | undefined,
): { traceId: string; spanId: string } | null {
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(
    header ?? '',
  );
  if (!match) return null;
  const [, version, traceId = '', spanId = '', rest] = match;
  // Later versions may add to the end; version 00 may not.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId };
}
