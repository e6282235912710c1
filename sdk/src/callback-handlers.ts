import type { Callback, CallbackAnswer } from './api.ts';
import type { GivenHeaders } from './callback-headers.ts';
import { memoryOfReplays } from './replays.ts';
import {
  alreadyParsed,
  CallbackError,
  checkTolerance,
  type Event,
  isCallback,
  isEvent,
  type RawBody,
  readKeys,
  type SigningKeys,
  type VerifyOptions,
  verify,
} from './verify-callback.ts';

// The SDK declares the frameworks' types itself, so that it does not depend on any of them.

export type CallbackHandlerOptions = VerifyOptions & {
  signingKey: SigningKeys;
  /**
   * Called with a callback whose signature is valid, perhaps more than once for one outcome:
   * deduplicate on `client_reference_id` plus `status`. If it returns a `redirect_url`, the answer
   * contains that. If it throws, the answer is a 500, or the status of a `RefuseCallback`, and the
   * service retries later.
   */
  onCallback(
    callback: Callback,
  ): CallbackAnswer | undefined | void | Promise<CallbackAnswer | undefined> | Promise<void>;
  /**
   * Called with an event, if the integration asked for events at the same address. An event may
   * come more than once: deduplicate on `id`. Without `onEvent`, events are refused, and the
   * operator is alerted.
   */
  onEvent?: ((event: Event) => unknown) | undefined;
  /** Called with the reason when a POST is not answered with a 200; default `console.error`. */
  onError?: ((error: unknown) => unknown) | undefined;
};

/** Throw this from `onCallback` to refuse a genuine callback and say why. */
export class RefuseCallback extends Error {
  readonly status: number;

  /** The message is sent to the service, with a status from 400 to 499. */
  constructor(message: string, status = 422) {
    if (!Number.isInteger(status) || status < 400 || status > 499) {
      throw new TypeError('The status of a refusal must be from 400 to 499.');
    }
    super(message);
    this.name = new.target.name;
    this.status = status;
  }
}

export type NodeRequest = AsyncIterable<unknown> & {
  method?: string | undefined;
  headers: Record<string, string | string[] | undefined>;
  readableDidRead?: boolean;
  /** The body, if a parser has already read it. */
  body?: unknown;
  rawBody?: unknown;
};

export type NodeResponse = {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
};

export type FastifyLike = {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    contentType: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parser: (request: unknown, body: Uint8Array, done: FastifyDone) => void,
  ): unknown;
  post(
    path: string,
    handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown>,
  ): unknown;
};
type FastifyDone = (error: Error | null, body?: unknown) => void;
type FastifyRequestLike = {
  headers: Record<string, string | string[] | undefined>;
  body?: unknown;
};
type FastifyReplyLike = { code(status: number): unknown };

export type HonoContextLike = { req: { raw: Request } };

export type CallbackHandlers = {
  /** `http.createServer(…)`: call it for the path of your `notify_url`. */
  node(request: NodeRequest, response: NodeResponse): Promise<void>;
  /** `app.post('/callback', handlers.express)`, before any body parser. */
  express(request: NodeRequest, response: NodeResponse): Promise<void>;
  /** `app.register(handlers.fastify, { path: '/callback' })`; other routes keep their parsers. */
  fastify(app: FastifyLike, options: { path?: string }): Promise<void>;
  /** `app.post('/callback', handlers.hono)` */
  hono(context: HonoContextLike): Promise<Response>;
  /** For anything that takes a `Request` and expects a `Response`. */
  fetch(request: Request): Promise<Response>;
};

/** A callback has a few hundred bytes. A larger body does not come from the service. */
const bodyBytesMax = 64 * 1024;

type Answer = { status: number; body: { redirect_url?: string; error?: string } };

/** Handlers for the address in `notify_url`. They read the raw bytes themselves. */
export function callbackHandlers(options: CallbackHandlerOptions): CallbackHandlers {
  const answer = answerer(options);
  const { onError = reportToConsole } = options;

  async function node(request: NodeRequest, response: NodeResponse): Promise<void> {
    const { status, body } = await answer(request.method, request.headers, () => readNode(request));
    try {
      response.statusCode = status;
      response.setHeader('content-type', 'application/json');
      // The handler refuses these before it has read the body, so the connection cannot be reused.
      if (status === 405 || status === 413) response.setHeader('connection', 'close');
      response.end(JSON.stringify(body));
    } catch (error) {
      // Other code has already answered this request.
      void report(onError, error);
    }
  }

  async function fetch(request: Request): Promise<Response> {
    const { status, body } = await answer(request.method, request.headers, () =>
      readFetch(request),
    );
    return new Response(JSON.stringify(body), {
      status,
      headers: { 'content-type': 'application/json' },
    });
  }

  return {
    node,
    express: node,
    fetch,
    hono: (context) => fetch(context.req.raw),
    async fastify(app, { path = '/callback' }) {
      app.removeAllContentTypeParsers();
      const bytes = { parseAs: 'buffer', bodyLimit: bodyBytesMax } as const;
      app.addContentTypeParser('*', bytes, (_request, body, done) => done(null, body));
      app.post(path, async ({ headers, body: raw }, reply) => {
        const { status, body } = await answer('POST', headers, async () =>
          isBytes(raw) ? raw : '',
        );
        reply.code(status);
        return body;
      });
    },
  };
}

/** Verifies a request, calls `onCallback`, and builds the answer, for any framework. */
function answerer(options: CallbackHandlerOptions) {
  const keys = readKeys(options.signingKey);
  checkTolerance(options.toleranceSeconds);
  const verification = { ...options, replays: options.replays ?? memoryOfReplays() };
  const { onError = reportToConsole, onEvent } = options;
  const isKnown = (value: unknown): value is Callback | Event =>
    isCallback(value) || (onEvent !== undefined && isEvent(value));
  return async (
    method: string | undefined,
    headers: GivenHeaders,
    read: () => Promise<RawBody>,
  ): Promise<Answer> => {
    if (method !== 'POST') return { status: 405, body: { error: 'A callback is a POST.' } };
    try {
      const { message, forget } = await verify(await read(), headers, keys, verification, isKnown);
      try {
        if ('event' in message) {
          await onEvent?.(message);
          return { status: 200, body: {} };
        }
        return { status: 200, body: answerOf(await options.onCallback(message)) };
      } catch (error) {
        await forget();
        throw error;
      }
    } catch (error) {
      void report(onError, error);
      return isRefusal(error)
        ? { status: statusOf(error), body: { error: error.message } }
        : { status: 500, body: { error: 'The callback was understood and could not be handled.' } };
    }
  };
}

const reportToConsole = (error: unknown) => console.error(isRefusal(error) ? error.message : error);

/** If `onError` fails, the service must still get its answer. */
async function report(onError: (error: unknown) => unknown, error: unknown): Promise<void> {
  try {
    await onError(error);
  } catch (failure) {
    console.error('onError failed:', failure);
  }
}

/** Sends only `redirect_url`: a handler may return more, such as the order. */
function answerOf(returned: unknown): Answer['body'] {
  const { redirect_url } = (returned ?? {}) as CallbackAnswer;
  return typeof redirect_url === 'string' ? { redirect_url } : {};
}

function isRefusal(error: unknown): error is CallbackError | RefuseCallback {
  return error instanceof CallbackError || error instanceof RefuseCallback;
}

function statusOf(refusal: CallbackError | RefuseCallback): number {
  if (refusal instanceof RefuseCallback) return refusal.status;
  const { code } = refusal;
  if (code === 'body_too_large') return 413;
  // A body that was parsed too early is the receiver's own mistake. After a 500 the service keeps
  // retrying, so the callback still arrives once the mistake is corrected.
  return code === 'body_already_parsed' ? 500 : 400;
}

const isBytes = (value: unknown): value is Uint8Array => ArrayBuffer.isView(value);

async function readNode(request: NodeRequest): Promise<RawBody> {
  // Some platforms and `express.raw()` provide the raw bytes.
  if (isBytes(request.rawBody)) return request.rawBody;
  if (isBytes(request.body)) return request.body;
  if (request.readableDidRead) throw alreadyParsed();
  return await collect(request, Number(request.headers['content-length'] ?? 0));
}

async function readFetch(request: Request): Promise<RawBody> {
  if (request.bodyUsed) throw alreadyParsed();
  if (!request.body) return '';
  const length = Number(request.headers.get('content-length') ?? 0);
  return await collect(chunksOf(request.body.getReader()), length);
}

/** Some runtimes' streams are not iterable. */
async function* chunksOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<unknown> {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

async function collect(chunks: AsyncIterable<unknown>, announced: number): Promise<Uint8Array> {
  const tooLarge = () =>
    new CallbackError('body_too_large', `A callback has at most ${bodyBytesMax} bytes.`);
  if (announced > bodyBytesMax) throw tooLarge();
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    // With an encoding set on the stream, the original bytes are lost.
    if (!isBytes(chunk)) throw alreadyParsed();
    parts.push(chunk);
    length += chunk.length;
    if (length > bodyBytesMax) throw tooLarge();
  }
  const body = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    body.set(part, offset);
    offset += part.length;
  }
  return body;
}
