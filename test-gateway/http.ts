import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

const bodyBytesMax = 128 * 1024;

/** A request that no API can read. Each API reports the error in its own format. */
export class UnreadableRequest extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function keyOf(request: IncomingMessage): string | null {
  const given = header(request, 'authorization') ?? '';
  const [, scheme = '', value = ''] = /^(\S+)\s+(\S+)$/.exec(given) ?? [];
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return null;
  return Buffer.from(value, 'base64').toString('utf8').split(':')[0] ?? null;
}

export function isSame(given: string, wanted: string): boolean {
  const [left, right] = [given, wanted].map((text) => createHash('sha256').update(text).digest());
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}

export function header(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' ? value : null;
}

/**
 * The URL of a request. A path that begins with two slashes must not be read as another host. A
 * target that cannot be parsed becomes `/`, which no API serves.
 */
export function readUrl({ url: target = '/' }: IncomingMessage): URL {
  const origin = 'http://gateway';
  const given = target.startsWith('/') ? `${origin}${target}` : target;
  return URL.parse(given) ?? new URL('/', origin);
}

/** Decodes the id in a path. */
export function readId(encoded = ''): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw new UnreadableRequest(400, 'The id in the address cannot be read.');
  }
}

export const readBody = async (request: IncomingMessage): Promise<string> =>
  (await readBytes(request)).toString('utf8');

export async function readBytes(
  request: IncomingMessage,
  bytesMax = bodyBytesMax,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > bytesMax) throw new UnreadableRequest(413, 'The request is too large.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function readJson(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // The error below covers this case too.
  }
  throw new UnreadableRequest(400, 'The body must be a JSON object.');
}

export function send(response: ServerResponse, status: number, body: string): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}
