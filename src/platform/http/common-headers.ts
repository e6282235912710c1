import { maxHeaderSize } from 'node:http';
import type { Socket } from 'node:net';
import { badRequest, presentErrors } from './errors.ts';

/**
 * The headers that every answer begins with; `url` is the address of the application that answers.
 * Pages replace the content security policy with their own.
 */
export function commonHeaders(url: string): Record<string, string> {
  const isSecure = url.startsWith('https:');
  return {
    // Browsers ignore this header over plain http.
    ...(isSecure && { 'strict-transport-security': 'max-age=31536000; includeSubDomains' }),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  };
}

const brokenRequests: Record<string, string> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not arrive in time.',
  HPE_HEADER_OVERFLOW: `The request line and headers are larger than ${maxHeaderSize / 1024} KiB together.`,
};

/** Answers a request that Node could not parse, or that came too slowly, in our own envelope. */
export function answerBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  { url, requestId }: { url: string; requestId: string },
): void {
  // A browser opens connections in advance. If it sends a request on an unused one at this moment,
  // it would take our answer for the answer to that request.
  const isUnused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0;
  if (error.code === 'ECONNRESET' || isUnused || !socket.writable) {
    socket.destroy();
    return;
  }
  const detail = brokenRequests[error.code ?? ''] ?? 'The request is not valid HTTP.';
  const body = JSON.stringify(presentErrors(badRequest(detail)));
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': requestId,
    ...commonHeaders(url),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join('')}\r\n${body}`, () => socket.destroy());
}
