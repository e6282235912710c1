import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  header,
  isSame,
  keyOf,
  readBody,
  readBytes,
  readJson,
  send,
  UnreadableRequest,
} from '../http.ts';
import { newId } from '../objects/made.ts';
import { contextFor, type Running } from '../running.ts';
import { invalidRequest, StripeAnswer } from './errors.ts';
import { type Form, parseForm } from './form.ts';
import { createCaller } from './keyed-calls.ts';
import { parseMultipart } from './multipart.ts';
import { findOperation, type Operation } from './routes.ts';

type Caller = ReturnType<typeof createCaller>;

/** Answers the part of Stripe's API that Tranche uses, and the gateway's controls. */
export function createStripeApi(running: Running) {
  const callOperation = createCaller(running.store, running.faults);
  return (request: IncomingMessage, response: ServerResponse, url: URL) =>
    serve(running, callOperation, request, response, url);
}

async function serve(
  running: Running,
  callOperation: Caller,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const id = newId('req');
  response.setHeader('Request-Id', id);
  response.setHeader('Cache-Control', 'no-cache, no-store');
  const version = header(request, 'stripe-version');
  if (version !== null) response.setHeader('Stripe-Version', version);
  try {
    if (url.pathname.startsWith('/_test/faults')) {
      await controlFaults(running, request, response, url);
    } else {
      await call(running, callOperation, request, response, url, id);
    }
  } catch (error) {
    const answer =
      error instanceof UnreadableRequest
        ? invalidRequest(error.message, { status: error.status })
        : error;
    if (!(answer instanceof StripeAnswer)) throw error;
    send(response, answer.status, JSON.stringify({ error: answer.body }));
  }
}

async function call(
  running: Running,
  callOperation: Caller,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  id: string,
): Promise<void> {
  const method = request.method ?? 'GET';
  const path = url.pathname;
  const key = keyOf(request);
  if (key === null) throw unauthorized('You did not provide an API key.');
  const publishable = isSame(key, running.publishableKey);
  if (!publishable && !isSame(key, running.secretKey)) {
    throw unauthorized('Invalid API Key provided.');
  }
  const found = findOperation(method, path);
  if (found === null) {
    throw invalidRequest(`Unrecognized request URL (${method}: ${path.slice(0, 200)}).`, {
      status: 404,
    });
  }
  if (publishable && !found.operation.publishable) {
    throw invalidRequest(
      'This API call cannot be made with a publishable API key. Please use a secret API key.',
      { status: 403, code: 'secret_key_required' },
    );
  }
  const form =
    method === 'POST' ? await readForm(request, found.operation) : parseForm(url.search.slice(1));
  if (publishable && method === 'GET' && form.client_secret === undefined) {
    throw invalidRequest('Missing required param: client_secret.', {
      code: 'parameter_missing',
      param: 'client_secret',
    });
  }
  const context = contextFor(running, request, !publishable);
  await callOperation({ request, response, id, method, path, form, ...found, context });
}

async function readForm(request: IncomingMessage, { bodyBytesMax }: Operation): Promise<Form> {
  const bytes = await readBytes(request, bodyBytesMax);
  const type = header(request, 'content-type') ?? '';
  return type.startsWith('multipart/form-data')
    ? parseMultipart(bytes, type)
    : parseForm(bytes.toString('utf8'));
}

async function controlFaults(
  { secretKey, faults }: Running,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const key = keyOf(request);
  if (key === null || !isSame(key, secretKey)) {
    throw unauthorized('The control of faults needs the secret key.');
  }
  const id = url.pathname.match(/^\/_test\/faults\/([^/]+)$/)?.[1] ?? null;
  const all = url.pathname === '/_test/faults';
  if (request.method === 'GET' && all) {
    send(response, 200, JSON.stringify({ data: faults.list() }));
  } else if (request.method === 'DELETE' && (all || id !== null)) {
    send(response, 200, JSON.stringify({ removed: faults.remove(id) }));
  } else if (request.method === 'POST' && all) {
    const added = faults.add(readJson(await readBody(request)));
    if (typeof added === 'string') throw invalidRequest(added);
    send(response, 200, JSON.stringify(added));
  } else {
    throw invalidRequest('Unrecognized request URL.', { status: 404 });
  }
}

function unauthorized(message: string): StripeAnswer {
  return invalidRequest(message, { status: 401 });
}
