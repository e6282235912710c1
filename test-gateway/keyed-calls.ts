import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Answer, Context } from './api/operation.ts';
import { refusalNamed } from './cards.ts';
import { type ErrorBody, invalidRequest, StripeAnswer } from './errors.ts';
import type { Fault, Faults } from './faults.ts';
import type { Form } from './form.ts';
import { header, send } from './http.ts';
import type { Operation } from './routes.ts';
import type { Store } from './store.ts';

const keyLifeMs = 24 * 60 * 60 * 1000;

/** A request that has been authenticated and read. */
export type Call = {
  request: IncomingMessage;
  response: ServerResponse;
  /** Stripe's id of the request, as answered in `Request-Id`. */
  id: string;
  method: string;
  path: string;
  form: Form;
  operation: Operation;
  objectId: string;
  context: Context;
};

/**
 * Runs operations under their idempotency keys, as Stripe does: the first answer is kept with its
 * effect and sent again. Faults strike here.
 */
export function createCaller(store: Store, faults: Faults) {
  const inFlight = new Set<string>();

  /** Does the work and sends its answer, or not, as the fault demands. */
  async function withFault(
    fault: Fault | null,
    socket: Socket,
    work: () => () => void,
  ): Promise<void> {
    switch (fault?.fault) {
      case 'latency':
      case 'hold_key':
        await faults.wait(fault);
        work()();
        break;
      case 'latency_after': {
        const answer = work();
        await faults.wait(fault);
        answer();
        break;
      }
      case 'drop_before':
        socket.destroy();
        break;
      case 'drop_after':
        work();
        socket.destroy();
        break;
      default:
        work()();
    }
  }

  async function callWithKey(
    { request, response, id, method, path, form, context }: Call,
    key: string,
    fault: Fault | null,
    run: () => Answer,
  ): Promise<void> {
    response.setHeader('Idempotency-Key', key);
    if (inFlight.has(key)) {
      throw invalidRequest(
        'There is currently another in-progress request using this idempotency key.',
        { status: 409, code: 'idempotency_key_in_use' },
      );
    }
    const fingerprint = fingerprintOf(method, path, form);
    const before = store.findKey(key);
    if (before !== null && before.at > context.timeOf(before.merchant) * 1000 - keyLifeMs) {
      if (before.fingerprint !== fingerprint) {
        throw new StripeAnswer(400, {
          type: 'idempotency_error',
          message:
            'Keys for idempotent requests can only be used with the same parameters they were first used with.',
        });
      }
      response.setHeader('Idempotent-Replayed', 'true');
      response.setHeader('Original-Request', before.request);
      // A fault strikes a replayed answer as well as a first one.
      const { status, body } = before;
      await withFault(fault, request.socket, () => () => send(response, status, body));
      return;
    }

    const keep = (answer: Answer): Answer => {
      const at = context.timeOf(context.merchant) * 1000;
      store.pruneKeys(context.merchant, at - keyLifeMs);
      store.saveKey(key, {
        fingerprint,
        status: answer.status,
        body: JSON.stringify(answer.body),
        request: id,
        merchant: context.merchant,
        at,
      });
      return answer;
    };
    const effect = (): Answer => {
      try {
        // The first answer is replayed even when it was a 500.
        return store.write(context.merchant, () => keep(run()));
      } catch (error) {
        if (!(error instanceof StripeAnswer) || !error.executed) throw error;
        const refusal = { status: error.status, body: { error: error.body } };
        return store.write(context.merchant, () => keep(refusal));
      }
    };
    inFlight.add(key);
    try {
      await withFault(fault, request.socket, () => {
        const { status, body } = effect();
        return () => send(response, status, JSON.stringify(body));
      });
    } finally {
      inFlight.delete(key);
    }
  }

  return async function callOperation(call: Call): Promise<void> {
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
      const answer = operation.run({ ...context, decline }, form, objectId);
      return fault?.fault === 'error_after' ? failure() : answer;
    };
    if (key !== null) {
      await callWithKey(call, key, fault, run);
      return;
    }
    const work = method !== 'GET' ? () => store.write(context.merchant, run) : run;
    await withFault(fault, request.socket, () => {
      const { status, body } = work();
      return () => send(response, status, JSON.stringify(body));
    });
  };
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

export function failure(): Answer {
  const error: ErrorBody = {
    type: 'api_error',
    message: 'An unknown error occurred. Contact support if this persists.',
  };
  return { status: 500, body: { error } };
}
