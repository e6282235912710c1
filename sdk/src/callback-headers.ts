/** The request's headers as frameworks provide them, or only the value of `X-Signature`. */
export type GivenHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | string
  | readonly string[]
  | null
  | undefined;

export type CallbackHeaders = {
  /** Every X-Signature of the request. */
  signature: readonly string[];
  id: string;
  /** Null if the request has no such header. */
  timestamp: string | null;
  webhookSignature: string;
};

export function callbackHeadersOf(given: GivenHeaders): CallbackHeaders {
  if (given === null || given === undefined || typeof given === 'string' || isList(given)) {
    return { signature: [given ?? ''].flat(), id: '', timestamp: null, webhookSignature: '' };
  }
  const read = readerOf(given);
  return {
    signature: read('x-signature'),
    id: read('webhook-id').join(),
    timestamp: read('webhook-timestamp').join() || null,
    webhookSignature: read('webhook-signature').join(' '),
  };
}

function readerOf(headers: Exclude<GivenHeaders, string | readonly string[] | null | undefined>) {
  if (typeof headers.get === 'function') {
    const get = headers.get.bind(headers) as (name: string) => string | null;
    return (name: string) => [get(name) ?? ''];
  }
  // Node gives lower-case names. Some platforms keep the sender's spelling.
  const entries = Object.entries(headers as Record<string, string | readonly string[] | undefined>);
  return (name: string) =>
    entries.filter(([each]) => each.toLowerCase() === name).flatMap(([, value]) => value ?? []);
}

function isList(given: object): given is readonly string[] {
  return Array.isArray(given);
}
