import { Agent, request } from 'undici';
import { type MerchantTime, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import type { GatewaySettings } from '#gateway/settings.ts';
import { traceHeaders } from '#platform/tracing/trace.ts';
import { hyperswitchSettings } from './settings.ts';

/**
 * The gateway answered with an error. Its message may repeat what we sent, so we do not keep it.
 */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string | null;
  /** Whether the gateway refuses the amount. Only its message says so. */
  readonly refusesAmount: boolean;
  readonly requestId: string | null;
  readonly retryAfterMs: number | null;

  constructor(answer: {
    status: number;
    code: string | null;
    refusesAmount: boolean;
    requestId: string | null;
    retryAfterMs: number | null;
  }) {
    super(`status ${answer.status}`);
    this.status = answer.status;
    this.code = answer.code;
    this.refusesAmount = answer.refusesAmount;
    this.requestId = answer.requestId;
    this.retryAfterMs = answer.retryAfterMs;
  }
}

type Method = 'GET' | 'POST' | 'DELETE';

export type HyperswitchApi = {
  readonly settings: GatewaySettings;
  /** Sends a request. Throws `ApiError`, or `OutcomeUnknown` if no answer came. */
  call<T>(
    method: Method,
    path: string,
    given: { merchant?: MerchantTime | undefined; body?: object },
  ): Promise<T>;
  /** Whether the acquirer may be asked about a payment now. Counts the question. */
  mayAskAcquirer(payment_id: string, merchant: MerchantTime): boolean;
};

const timeoutMs = 15_000;
/** A page has a hundred payments. No real answer from the gateway is larger than this. */
const answerBytesMax = 8 * 1024 * 1024;

export function openHyperswitchApi(settings: GatewaySettings): HyperswitchApi {
  const problems = hyperswitchSettings.problems(settings);
  if (problems.length > 0) throw new Error(problems.join(' '));
  const limit = settings.timeoutMs ?? timeoutMs;
  const dispatcher = new Agent({
    connectTimeout: limit,
    headersTimeout: limit,
    bodyTimeout: limit,
    maxResponseSize: answerBytesMax,
  });
  const base = (settings.apiUrl ?? '').replace(/\/$/, '');

  return {
    settings,
    mayAskAcquirer: limitQuestions(hyperswitchSettings.capabilities(settings).lookUpsPerMinute),
    async call<T>(
      method: Method,
      path: string,
      { merchant, body }: { merchant?: MerchantTime | undefined; body?: object },
    ): Promise<T> {
      const headers = {
        ...traceHeaders(),
        'api-key': settings.secretKey,
        ...(body && { 'content-type': 'application/json' }),
        ...(settings.testGateway &&
          merchant && {
            'tranche-merchant': merchant.id,
            'tranche-merchant-time': merchant.now,
          }),
      };
      try {
        const response = await request(`${base}${path}`, {
          method,
          headers,
          dispatcher,
          signal: AbortSignal.timeout(limit),
          ...(body && { body: JSON.stringify(body) }),
        });
        const text = await response.body.text();
        return readAnswer<T>(response.statusCode, response.headers, text);
      } catch (error) {
        if (error instanceof ApiError) throw error;
        // The error's name says what happened. Its text may contain more than we want to log.
        const why = error instanceof Error ? error.name : 'unknown';
        throw new OutcomeUnknown(`the gateway did not answer (${why})`, 'no_answer');
      }
    },
  };
}

/** Messages that refuse an amount. The codes do not tell an amount from any other wrong value. */
const amountMessage = /^(Invalid value provided: amount$|amount should not be more than )/;

/** Beyond this number of payments, the ones that were asked about first are forgotten. */
const askedMax = 10_000;

/** Allows this many questions a minute about each payment, in this process. */
function limitQuestions(perMinute: number | null): HyperswitchApi['mayAskAcquirer'] {
  if (perMinute === null) return () => true;
  const asked = new Map<string, number[]>();
  return (payment_id, merchant) => {
    const now = Temporal.Instant.from(merchant.now).epochMilliseconds;
    const recent = (asked.get(payment_id) ?? []).filter((at) => now < at + 60_000);
    if (recent.length >= perMinute) return false;
    asked.set(payment_id, [...recent, now]);
    const [oldest] = asked.keys();
    if (asked.size > askedMax && oldest !== undefined) asked.delete(oldest);
    return true;
  };
}

function readAnswer<T>(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  text: string,
): T {
  const body = readJson(text);
  // A refusal by a rule of the account also has status 200.
  if (status === 200 && body !== null && body.error === undefined) return body as T;
  const code = body?.error?.code;
  const requestId = headers['x-request-id'];
  const retryAfter = headers['retry-after'];
  throw new ApiError({
    status,
    code: typeof code === 'string' ? code.slice(0, 20) : null,
    refusesAmount: amountMessage.test(String(body?.error?.message)),
    requestId: typeof requestId === 'string' ? requestId.slice(0, 100) : null,
    retryAfterMs:
      typeof retryAfter === 'string' && /^\d{1,6}$/.test(retryAfter)
        ? Number(retryAfter) * 1000
        : null,
  });
}

function readJson(text: string): { error?: { code?: unknown; message?: unknown } } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof ApiError && error.code !== null && codes.includes(error.code);
}

export const refusesAmount = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.refusesAmount;

/** Hyperswitch codes that the adapter acts on. */
export const codes = {
  /** Another request about the payment is being processed (422), or the server failed (500). */
  busy: 'HE_00',
  exists: 'HE_01',
  missing: 'HE_02',
  /** The payment's state does not allow the call. */
  state: 'IR_14',
  precondition: 'IR_16',
  unreadable: 'IR_06',
  invalidFormat: 'IR_05',
  invalidValue: 'IR_07',
  redacted: 'IR_11',
  /** There are too many refunds, or the customer already exists. */
  tooMany: 'IR_12',
  exceeds: 'IR_13',
} as const;

/** Throws the port's own errors, without the gateway's message. */
export function fail(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  const { status, code, requestId } = error;
  const facts = Object.entries({ status, code, request: requestId })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
  // A 200 that cannot be read says nothing about what was done.
  const isUnknown =
    status >= 500 || status === 409 || status === 429 || status === 423 || code === codes.busy;
  if (!isUnknown && !(status === 200 && code === null)) {
    throw new RequestRefused(`the gateway refused the request (${facts})`);
  }
  const why = status === 429 ? 'too_many' : status >= 500 ? 'no_answer' : 'undecided';
  throw new OutcomeUnknown(
    `the gateway did not say what happened (${facts})`,
    why,
    why === 'too_many' ? error.retryAfterMs : null,
  );
}
