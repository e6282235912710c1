import type { Callback, DisputeEvent, PayoutEvent, RefundEvent } from './api.ts';
import { callbackHeadersOf, type GivenHeaders } from './callback-headers.ts';
import { memoryOfReplays, type ReplayStore } from './replays.ts';
import { checkSecret, explainBadForm, isSignedBy } from './signature.ts';

/** The bytes as received. A string is encoded as UTF-8, which is right only if it is unchanged. */
export type RawBody = Uint8Array | ArrayBuffer | string;

/** One key, or both during a rotation. */
export type SigningKeys = string | readonly string[];

/** A request that is not a genuine callback, and the reason. */
export class CallbackError extends Error {
  readonly code:
    | 'signature_missing'
    | 'signature_malformed'
    | 'signature_mismatch'
    | 'timestamp_missing'
    | 'timestamp_malformed'
    | 'timestamp_outside_tolerance'
    | 'replayed'
    | 'body_already_parsed'
    | 'body_too_large'
    | 'not_a_callback';

  constructor(code: CallbackError['code'], message: string) {
    super(message);
    this.name = 'CallbackError';
    this.code = code;
  }
}

export type VerifyOptions = {
  /**
   * How far `webhook-timestamp` may be from this server's clock, in seconds; default 300. `null`
   * disables the checks on timestamps and replays.
   */
  toleranceSeconds?: number | null | undefined;
  /**
   * Whether callbacks without `webhook-timestamp` are refused; default true, unless
   * `toleranceSeconds` is null. The service sends it with every callback, and an attacker who
   * replays an old one would drop it. Set it to false only if a proxy in front of your server drops
   * the header.
   */
  requireTimestamp?: boolean | undefined;
  /**
   * Where accepted callbacks are remembered until their timestamp is too old. The default is this
   * process's memory: several processes behind one address need a store that they share.
   */
  replays?: ReplayStore | undefined;
  /** Milliseconds since 1970; default `Date.now`. */
  now?: (() => number) | undefined;
};

const usualToleranceSeconds = 300;
const replaysOfThisProcess = memoryOfReplays();

/**
 * Returns the callback if it is genuine, fresh and new. Otherwise throws a `CallbackError`: answer
 * that with a 400 and do nothing else. Pass the request's headers; with only the value of
 * `X-Signature` the time of the callback cannot be checked.
 */
export async function verifyCallback(
  rawBody: RawBody,
  headers: GivenHeaders,
  signingKey: SigningKeys,
  options: VerifyOptions = {},
): Promise<Callback> {
  const { message } = await verify(rawBody, headers, signingKey, options, isCallback);
  return message;
}

/** A change of a refund, a dispute or a payout. Sent if the integration asked for it. */
export type Event = RefundEvent | DisputeEvent | PayoutEvent;

/**
 * Returns the event (`refund.updated`, `dispute.updated` or `payout.updated`) if it is genuine,
 * fresh and new. Otherwise throws a `CallbackError`: answer that with a 400 and do nothing else.
 * Deduplicate on its `id`, and ignore an event whose `sequence` is below one that you have seen for
 * the same `data.id`.
 */
export async function verifyEvent(
  rawBody: RawBody,
  headers: GivenHeaders,
  signingKey: SigningKeys,
  options: VerifyOptions = {},
): Promise<Event> {
  const { message } = await verify(rawBody, headers, signingKey, options, isEvent);
  return message;
}

/** A verified message, and a function to forget it if the receiver fails to handle it. */
export type Verified<Message> = { message: Message; forget(): Promise<unknown> };

export async function verify<Message>(
  rawBody: RawBody,
  headers: GivenHeaders,
  signingKey: SigningKeys,
  options: VerifyOptions,
  isExpected: (value: unknown) => value is Message,
): Promise<Verified<Message>> {
  const tolerance = checkTolerance(options.toleranceSeconds);
  const keys = readKeys(signingKey);
  const body = readBytes(rawBody);
  const given = callbackHeadersOf(headers);
  await checkSignature(body, given.signature, keys);
  const message = readMessage(body, isExpected);
  const isTimed = given.timestamp !== null;
  if (!isTimed && (options.requireTimestamp ?? tolerance !== null)) {
    throw new CallbackError(
      'timestamp_missing',
      'The callback has no webhook-timestamp header. Pass all headers of the request.',
    );
  }
  if (!isTimed || tolerance === null) return { message, forget: async () => {} };

  const now = (options.now ?? Date.now)();
  const timestamp = await checkTimestamp(body, given, keys);
  const difference = Math.round(timestamp - now / 1000);
  if (Math.abs(difference) > tolerance) {
    throw new CallbackError(
      'timestamp_outside_tolerance',
      `The callback was sent ${Math.abs(difference)} seconds ${difference < 0 ? 'ago' : 'in the future'}, and the tolerance is ${tolerance} seconds. It is a replay, or this server's clock is wrong.`,
    );
  }
  // The service signs every attempt again, so the same id and time mean a replay of the same bytes.
  const replays = options.replays ?? replaysOfThisProcess;
  const name = `${given.id} ${timestamp}`;
  if (!(await replays.add(name, (timestamp + tolerance) * 1000 + 1000))) {
    throw new CallbackError('replayed', 'This delivery of the callback was accepted before.');
  }
  return { message, forget: async () => await replays.remove(name) };
}

async function checkSignature(
  body: Uint8Array,
  given: readonly string[],
  keys: readonly string[],
): Promise<void> {
  const [signature, another] = given;
  if (!signature) {
    throw new CallbackError('signature_missing', 'The callback has no X-Signature header.');
  }
  const badForm = another === undefined ? explainBadForm(signature) : 'there are several';
  if (badForm !== null) {
    throw new CallbackError('signature_malformed', `X-Signature is not a signature: ${badForm}.`);
  }
  if (!(await isSignedBy(keys, body, signature))) {
    throw new CallbackError(
      'signature_mismatch',
      `X-Signature does not match the ${body.length} bytes of the body under ${keys.length === 1 ? 'the signing key' : `any of the ${keys.length} signing keys`}. If the key is right, the bytes are not those that were sent: verify before anything parses them.`,
    );
  }
}

/** X-Signature does not cover the timestamp; the signature of Standard Webhooks does. */
async function checkTimestamp(
  body: Uint8Array,
  given: { id: string; timestamp: string | null; webhookSignature: string },
  keys: readonly string[],
): Promise<number> {
  const timestamp = given.timestamp ?? '';
  if (!/^\d{1,12}$/.test(timestamp)) {
    throw new CallbackError(
      'timestamp_malformed',
      'webhook-timestamp is not a number of seconds since 1970.',
    );
  }
  const prefix = new TextEncoder().encode(`${given.id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  // During a rotation the header may hold several signatures.
  const signatures = [...given.webhookSignature.matchAll(/(?:^| )v1,([A-Za-z0-9+/]{43}=)(?= |$)/g)];
  for (const [, signature = ''] of signatures) {
    if (await isSignedBy(keys, signed, signature, 'SHA-256')) return Number(timestamp);
  }
  throw new CallbackError(
    'signature_mismatch',
    'webhook-signature does not match webhook-id, webhook-timestamp and the body.',
  );
}

export function checkTolerance(value: unknown): number | null {
  if (value === null) return null;
  const seconds = value ?? usualToleranceSeconds;
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= 86_400)) {
    throw new TypeError('toleranceSeconds must be a number above 0 and at most 86400, or null.');
  }
  return seconds;
}

export function alreadyParsed(): CallbackError {
  return new CallbackError(
    'body_already_parsed',
    'The body was parsed before its signature could be verified, and a parsed body cannot be verified: the signature is over the raw bytes. Register the callback route before express.json() or any other body parser, or pass the raw bytes.',
  );
}

export function readKeys(signingKey: SigningKeys): string[] {
  const keys = [signingKey].flat();
  if (keys.length === 0) throw new TypeError('signingKey is missing: the list is empty.');
  return keys.map((key) => checkSecret('signingKey', key, 'sig'));
}

function readBytes(rawBody: unknown): Uint8Array {
  if (typeof rawBody === 'string') return new TextEncoder().encode(rawBody);
  if (ArrayBuffer.isView(rawBody)) {
    return new Uint8Array(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  }
  // This is not `instanceof`, because test runners may use a realm with its own ArrayBuffer.
  if (Object.prototype.toString.call(rawBody) === '[object ArrayBuffer]') {
    return new Uint8Array(rawBody as ArrayBuffer);
  }
  throw alreadyParsed();
}

/**
 * The same key signs your requests, so a valid signature does not prove that this is a callback:
 * an attacker may send one of your own requests back to you.
 */
function readMessage<Message>(
  body: Uint8Array,
  isExpected: (value: unknown) => value is Message,
): Message {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    value = null;
  }
  if (isExpected(value)) return value;
  throw new CallbackError(
    'not_a_callback',
    isEvent(value)
      ? `The body is the event ${value.event}. Verify it with verifyEvent, or give the handlers onEvent.`
      : isCallback(value)
        ? 'The body is the result of a payment, and not an event. Verify it with verifyCallback.'
        : 'The body is signed, and it is not a callback.',
  );
}

const eventNames: readonly unknown[] = ['refund.updated', 'dispute.updated', 'payout.updated'];

export function isEvent(value: unknown): value is Event {
  if (typeof value !== 'object' || value === null) return false;
  const { event, id, sequence, data } = value as Partial<Event>;
  return (
    eventNames.includes(event) &&
    typeof id === 'string' &&
    Number.isSafeInteger(sequence) &&
    typeof data?.id === 'string' &&
    typeof data.attributes?.status === 'string'
  );
}

export function isCallback(value: unknown): value is Callback {
  if (typeof value !== 'object' || value === null) return false;
  const { status, amount, currency, client_reference_id, number_of_payments } =
    value as Partial<Callback>;
  return (
    (status === 'successful' || status === 'cancelled') &&
    Number.isSafeInteger(amount) &&
    typeof currency === 'string' &&
    typeof client_reference_id === 'string' &&
    Number.isSafeInteger(number_of_payments)
  );
}
