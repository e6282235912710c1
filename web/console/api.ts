/** An answer of the server that is not a success. */
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

/** A path with those parameters that have a value. */
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
for (const kind of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
  window.addEventListener(kind, () => (lastInput = Date.now()), { passive: true, capture: true });
}

/** Requests of a page that only refreshes itself do not keep the session alive. */
const backgroundHeader = (): Record<string, string> =>
  Date.now() - lastInput > idleMs ? { 'tranche-background': '1' } : {};

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

async function request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal) {
  const text = await (await ask(method, path, body, signal)).text();
  return (text === '' ? null : JSON.parse(text)) as T;
}

/** Sends a request. Throws if the answer is not a success. */
async function ask(
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
    throw new ApiError(0, 'unreachable', 'The console cannot reach the service.');
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

type AskProof = (what: string) => Promise<boolean>;
let askProof: AskProof | null = null;

/** The dialog that asks for the passkey registers itself here. */
export function offerProof(ask: AskProof | null): void {
  askProof = ask;
}

/** The person closed the dialog that asked for the passkey. Nothing was sent. */
export class ProofRefused extends Error {}

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
  return await withProof(what, () => request<T>(method, path, body));
}

/** Reads a page of a list. A person who reads very many pages is asked for the passkey. */
export async function fetchList<T>(path: string, query: Query, signal: AbortSignal): Promise<T> {
  try {
    return await get<T>(path, query, signal);
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'proof_needed' && askProof)) throw error;
    // The page then says why it shows nothing.
    if (!(await askProof('Show this list'))) throw error;
    return await get<T>(path, query, signal);
  }
}

/** Reads a file. A file that names people asks for the passkey too. */
export const readFile = (path: string, what: string): Promise<Blob> =>
  withProof(what, async () => (await ask('GET', path)).blob());

async function withProof<T>(what: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'proof_needed' && askProof)) throw error;
    if (!(await askProof(what))) throw new ProofRefused();
    return await send();
  }
}
