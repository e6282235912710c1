import type { IncomingMessage, ServerResponse } from 'node:http';
import { Compile } from 'typebox/compile';
import { refusalNamed } from '../cards.ts';
import { withFault } from '../faults.ts';
import { header, isSame, readBody, readJson, send, UnreadableRequest } from '../http.ts';
import { newId } from '../objects/made.ts';
import { contextFor, type Running } from '../running.ts';
import { busy, failure, HyperswitchError, LateRefusal, UnreadableBody } from './errors.ts';
import { findOperation, type Operation } from './routes.ts';

/** Answers the part of Hyperswitch's API that Tranche uses. */
export function createHyperswitchApi(running: Running) {
  const locked = new Set<string>();
  return async (request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> => {
    response.setHeader('x-request-id', newId('req'));
    response.setHeader('Cache-Control', 'no-store');
    try {
      await call(running, locked, request, response, url);
    } catch (error) {
      const { status, body } = answerOf(error);
      send(response, status, JSON.stringify(body));
    }
  };
}

function answerOf(error: unknown): { status: number; body: object } {
  if (error instanceof HyperswitchError) return error;
  if (error instanceof UnreadableBody) return { status: 400, body: error.body };
  if (error instanceof UnreadableRequest) {
    return { status: error.status, body: new UnreadableBody(error.message).body };
  }
  throw error;
}

/** Returns whether the caller's key is the publishable one. Throws if the key is wrong here. */
function readKey(running: Running, request: IncomingMessage, operation: Operation): boolean {
  const key = header(request, 'api-key') ?? '';
  const isPublishable = isSame(key, running.publishableKey);
  const isKnown = isPublishable || isSame(key, running.secretKey);
  if (isKnown && (!isPublishable || operation.publishable)) return isPublishable;
  throw new HyperswitchError(401, 'IR_01', 'API key not provided or invalid API key used');
}

async function call(
  running: Running,
  locked: Set<string>,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const { store, faults } = running;
  const method = request.method ?? 'GET';
  const found = findOperation(method, url.pathname);
  if (found === null) throw new HyperswitchError(404, 'IR_02', 'Unrecognized request URL');
  const { operation, objectId } = found;
  const isPublishable = readKey(running, request, operation);
  const body = await readRequest(request, url, operation);
  const locks = locksOf(method, url.pathname, objectId, body);
  if (locks.some((id) => locked.has(id))) throw busy();
  const { payment_id, refund_id, customer_id } = body;
  const key = [objectId, payment_id, refund_id, customer_id].join(' ');
  const fault = faults.strike({ method, path: url.pathname, key });
  if (fault?.fault === 'too_many') throw new HyperswitchError(429, 'HE_00', 'Too many requests');
  const decline = fault?.fault === 'decline' ? refusalNamed(fault.decline_code) : null;
  const known = contextFor(running, request, !isPublishable);
  const hasAgreements = known.account.hasAgreements && fault?.fault !== 'no_acquirer';
  const context = { ...known, decline, account: { ...known.account, hasAgreements } };
  const work = () => {
    if (fault?.fault === 'error_before') return failure();
    try {
      const answer = store.write(context.merchant, () =>
        runOrRefuseLate(() => operation.run(context, body, objectId, isPublishable)),
      );
      if (answer instanceof LateRefusal) throw answer;
      check(operation.answer, answer);
      return fault?.fault === 'error_after' ? failure() : { status: 200, body: answer };
    } catch (error) {
      const answer = answerOf(error);
      return fault?.fault === 'error_after' ? failure() : answer;
    }
  };
  for (const id of locks) locked.add(id);
  try {
    await withFault(faults, fault, request.socket, () => {
      const { status, body } = work();
      return () => send(response, status, JSON.stringify(body));
    });
  } finally {
    for (const id of locks) locked.delete(id);
  }
}

/** Returns a late refusal rather than throwing it, so that the writes before it are committed. */
function runOrRefuseLate(run: () => object): object {
  try {
    return run();
  } catch (error) {
    if (error instanceof LateRefusal) return error;
    throw error;
  }
}

/**
 * The ids that a request about a payment locks: the payment's, and the customer's if the request
 * names a customer. A request that only reads locks nothing, unless it asks the acquirer
 * (`force_sync`). Hyperswitch refuses a request that would lock one of these ids a second time.
 */
function locksOf(
  method: string,
  path: string,
  objectId: string,
  { payment_id, customer_id, force_sync }: Record<string, unknown>,
): string[] {
  if (!path.startsWith('/payments') || (method !== 'POST' && force_sync !== 'true')) return [];
  return [objectId, payment_id, customer_id]
    .map((id) => String(id ?? ''))
    .filter((id) => id !== '');
}

type Schema = Operation['answer'];
const compiled = new Map<Schema, ReturnType<typeof Compile>>();

function validatorOf(schema: Schema): ReturnType<typeof Compile> {
  const known = compiled.get(schema) ?? Compile(schema);
  compiled.set(schema, known);
  return known;
}

/** Reads a request. Like the real server, it refuses members that a schema does not know. */
async function readRequest(
  request: IncomingMessage,
  url: URL,
  operation: Operation,
): Promise<Record<string, unknown>> {
  const isQuery = request.method === 'GET' || request.method === 'DELETE';
  const text = isQuery ? '' : await readBody(request);
  const given = isQuery ? readQuery(url) : text === '' ? {} : readJson(text);
  const validator = validatorOf(operation.request);
  if (validator.Check(given)) return given;
  const [problem] = validator.Errors(given);
  throw new UnreadableBody(
    `Json deserialize error: ${problem?.instancePath ?? ''} ${problem?.message ?? ''}`,
  );
}

const numeric = /^(limit|offset)$/;

const readQuery = (url: URL): Record<string, unknown> =>
  Object.fromEntries(
    [...url.searchParams].map(([name, value]) => [
      name,
      numeric.test(name) ? Number(value) : value,
    ]),
  );

/** Fails if the published document does not describe an answer: this program then has a bug. */
function check(schema: Schema, answer: object): void {
  const validator = validatorOf(schema);
  if (validator.Check(answer)) return;
  const [problem] = validator.Errors(answer);
  throw new Error(`the answer is not as published: ${JSON.stringify(problem)}`);
}
