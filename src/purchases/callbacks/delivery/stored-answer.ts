import { storedBodyBytesMax, storedHeaderBytesMax } from './limits.ts';
import type { Exchange } from './send-callback.ts';

/** The part of an answer that an attempt stores: its beginning, and its total length. */
export function storedAnswer({ headers, body, body_bytes }: Exchange) {
  return {
    ...storedHeaders(headers),
    response_body: body?.subarray(0, storedBodyBytesMax) ?? null,
    response_body_bytes: body_bytes,
  };
}

/** Stores whole headers, in their order, until the limit is reached. */
function storedHeaders(headers: Exchange['headers']) {
  if (headers === null) return { response_headers: null, response_header_bytes: null };
  const stored: NonNullable<Exchange['headers']> = {};
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    const values = typeof value === 'string' ? [value] : value;
    for (const one of values) bytes += name.length + one.length;
    if (bytes <= storedHeaderBytesMax) stored[name] = value;
  }
  return { response_headers: stored, response_header_bytes: bytes };
}
