/** An answer from the server that is not a success. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export type Query = Record<string, string | number | null | undefined>;

/** Returns the path with the parameters that have a value. */
export function withQuery(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === '' ? path : `${path}?${text}`;
}

const idleMs = 60_000;
let lastInput = Date.now();
/** Remembers when the person last used the page. */
export function noteInput(): void {
  lastInput = Date.now();
}

/** Requests of a page that only refreshes itself do not keep the session alive. */
const backgroundHeader = (): Record<string, string> =>
  Date.now() - lastInput > idleMs ? { 'tranche-background': '1' } : {};

const unreachable = 'The console cannot reach the service.';

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

async function request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal) {
  const response = await send(method, path, body, signal);
  try {
    const text = await response.text();
    return (text === '' ? null : JSON.parse(text)) as T;
  } catch (error) {
    if (signal?.aborted) throw error;
    // The connection broke off, or a proxy answered with a page of its own.
    throw new ApiError(0, 'unreachable', unreachable);
  }
}

/** Sends a request. Throws if the answer is not a success. */
async function send(
  method: Method,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(method === 'GET' && backgroundHeader()),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'unreachable', unreachable);
  }
  if (response.ok) return response;
  const text = await response.text();
  let code = 'failed';
  let message = `The service answered ${response.status}.`;
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    if (error.code) code = error.code;
    if (error.message) message = error.message;
  } catch {
    // The answer came from a proxy. Its page contains nothing useful to an operator.
  }
  throw new ApiError(response.status, code, message);
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal) =>
  request<T>('GET', withQuery(path, query), undefined, signal);

type Ask = (what: string) => Promise<boolean>;
let ask: Ask | null = null;
let asked: Promise<boolean> | null = null;

/** The dialog that asks for the passkey registers itself here. */
export function offerReauthentication(by: Ask | null): void {
  ask = by;
}

/** The person closed the dialog that asked for the passkey. Nothing was sent. */
export class NotReauthenticated extends Error {}

/** Whether the server wants the passkey first. */
export const needsReauthentication = (error: unknown) =>
  error instanceof ApiError && error.code === 'proof_needed';

/**
 * Sends a change. If the server demands the passkey, asks for it and sends the change again.
 * `what` is the label of the pressed button.
 */
export async function sendChange<T>(
  method: Method,
  path: string,
  body: unknown = {},
  what = 'Continue',
): Promise<T> {
  return await withReauthentication(what, () => request<T>(method, path, body));
}

/**
 * Reads rows that name people: a page of a list, or one order. The server asks for the passkey
 * after a person has read very many such rows. If the person closes that dialog, the page shows the
 * server's refusal. `what` is the label of what they wanted to see.
 */
export async function fetchList<T>(
  path: string,
  query: Query,
  signal: AbortSignal,
  what = 'Show this list',
): Promise<T> {
  let refusal: unknown;
  const read = () =>
    get<T>(path, query, signal).catch((error) => {
      refusal = error;
      throw error;
    });
  return await withReauthentication(what, read).catch((error) => {
    throw error instanceof NotReauthenticated ? refusal : error;
  });
}

/** Reads a file. A file that names people asks for the passkey too. */
export const readFile = (path: string, what: string): Promise<Blob> =>
  withReauthentication(what, async () => {
    const response = await send('GET', path);
    return await response.blob().catch(() => {
      throw new ApiError(0, 'broken_off', 'The connection broke off before the end of the file.');
    });
  });

async function withReauthentication<T>(what: string, attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (!needsReauthentication(error) || !ask) throw error;
    // The server may refuse a refresh of the page and an action at the same time. One answer is
    // enough for both.
    asked ??= ask(what).finally(() => (asked = null));
    if (!(await asked)) throw new NotReauthenticated();
    return await attempt();
  }
}
