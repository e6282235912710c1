import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from '../books/context.ts';
import { refusalNamed } from '../cards.ts';
import { type Fault, type Faults, withFault } from '../faults.ts';
import { header, send } from '../http.ts';
import type { KeyRecord, Store } from '../store.ts';
import { type ErrorBody, invalidRequest, StripeAnswer } from './errors.ts';
import type { Form } from './form.ts';
import type { Answer } from './operation.ts';
import type { Operation } from './routes.ts';

const keyLifeMs = 24 * 60 * 60 * 1000;

/** A request that has been authenticated and read. */
export type Call = {
  request: IncomingMessage;
  response: ServerResponse;
  /** Stripe's id of the request, which the header `Request-Id` returns. */
  id: string;
  method: string;
  path: string;
  form: Form;
  operation: Operation;
  objectId: string;
  context: Context;
};

/** The state that the calls of one gateway share. */
type Caller = {
  readonly store: Store;
  readonly faults: Faults;
  /** The keys whose requests have no answer yet. `callWithKey` changes this set. */
  readonly inFlight: Set<string>;
};

/**
 * Runs operations under their idempotency keys, as Stripe does: the first answer is stored with its
 * effect, and a request that repeats the key gets that answer again. Faults strike here.
 */
export function createCaller(store: Store, faults: Faults) {
  const caller: Caller = { store, faults, inFlight: new Set() };
  return (call: Call) => callOperation(caller, call);
}

async function callOperation(caller: Caller, call: Call): Promise<void> {
  const { store, faults } = caller;
  const { request, response, method, path, form, operation, objectId, context } = call;
  const key = method === 'POST' ? header(request, 'idempotency-key') : null;
  if (key !== null && key.length > 255) {
    throw invalidRequest('An idempotency key has at most 255 characters.', { status: 400 });
  }
  const fault = faults.strike({ method, path, key });
  if (fault?.fault === 'too_many') {
    response.setHeader('Retry-After', '1');
    throw new StripeAnswer(429, {
      type: 'invalid_request_error',
      code: 'rate_limit',
      message: 'Too many requests hit the API too quickly.',
    });
  }
  const decline = fault?.fault === 'decline' ? refusalNamed(fault.decline_code) : null;
  // A fault may make the effect and the answer disagree.
  const run = (): Answer => {
    if (fault?.fault === 'error_before') return failure();
    if (fault?.fault === 'processing') throw stillProcessing();
    const answer = operation.run({ ...context, decline }, form, objectId);
    return fault?.fault === 'error_after' ? failure() : answer;
  };
  if (key !== null) {
    await callWithKey(caller, call, key, fault, run);
    return;
  }
  const work = method !== 'GET' ? () => store.write(context.merchant, run) : run;
  await withFault(faults, fault, request.socket, () => {
    const { status, body } = work();
    return () => send(response, status, JSON.stringify(body));
  });
}

async function callWithKey(
  { store, faults, inFlight }: Caller,
  call: Call,
  key: string,
  fault: Fault | null,
  run: () => Answer,
): Promise<void> {
  const { request, response } = call;
  response.setHeader('Idempotency-Key', key);
  if (inFlight.has(key)) {
    throw invalidRequest(
      'There is currently another in-progress request using this idempotency key.',
      { status: 409, code: 'idempotency_key_in_use' },
    );
  }
  const fingerprint = fingerprintOf(call.method, call.path, call.form);
  const before = findAnswer(store, call, key, fingerprint);
  if (before !== null) {
    response.setHeader('Idempotent-Replayed', 'true');
    response.setHeader('Original-Request', before.request);
    // A fault that waits or closes the connection strikes a replayed answer too.
    const { status, body } = before;
    await withFault(faults, fault, request.socket, () => () => send(response, status, body));
    return;
  }
  inFlight.add(key);
  try {
    await withFault(faults, fault, request.socket, () => {
      const { status, body } = runAndKeep(store, call, { key, fingerprint }, run);
      return () => send(response, status, JSON.stringify(body));
    });
  } finally {
    inFlight.delete(key);
  }
}

/**
 * The answer stored under the key. Null if it is missing or too old. Throws if the key was first
 * used for a different request.
 */
function findAnswer(
  store: Store,
  { context }: Call,
  key: string,
  fingerprint: string,
): KeyRecord | null {
  const before = store.findKey(key);
  if (before === null) return null;
  if (before.at <= context.timeOf(before.merchant) * 1000 - keyLifeMs) return null;
  if (before.fingerprint === fingerprint) return before;
  throw new StripeAnswer(400, {
    type: 'idempotency_error',
    message:
      'Keys for idempotent requests can only be used with the same parameters they were first used with.',
  });
}

/** Stores the answer with its effect, even a 500. A refusal is stored if the operation began. */
function runAndKeep(
  store: Store,
  { id, context }: Call,
  { key, fingerprint }: { key: string; fingerprint: string },
  run: () => Answer,
): Answer {
  const { merchant } = context;
  const keep = (answer: Answer): Answer => {
    const { status } = answer;
    const at = context.timeOf(merchant) * 1000;
    store.pruneKeys(merchant, at - keyLifeMs);
    const body = JSON.stringify(answer.body);
    store.saveKey(key, { fingerprint, status, body, request: id, merchant, at });
    return answer;
  };
  try {
    return store.write(merchant, () => keep(run()));
  } catch (error) {
    if (!(error instanceof StripeAnswer) || !error.executed) throw error;
    const refusal = { status: error.status, body: { error: error.body } };
    return store.write(merchant, () => keep(refusal));
  }
}

/** Requests whose parameters differ only in their order are the same request. */
function fingerprintOf(method: string, path: string, form: Form): string {
  const sorted = (value: string | Form): unknown =>
    typeof value === 'string'
      ? value
      : Object.entries(value)
          .sort(([left], [right]) => (left < right ? -1 : 1))
          .map(([name, item]) => [name, sorted(item)]);
  return createHash('sha256')
    .update(JSON.stringify([method, path, sorted(form)]))
    .digest('base64');
}

const stillProcessing = () =>
  new StripeAnswer(
    400,
    {
      type: 'invalid_request_error',
      code: 'payment_intent_unexpected_state',
      message: 'This PaymentIntent has a status of processing and could not be canceled.',
    },
    true,
  );

export function failure(): Answer {
  const error: ErrorBody = {
    type: 'api_error',
    message: 'An unknown error occurred. Contact support if this persists.',
  };
  return { status: 500, body: { error } };
}
