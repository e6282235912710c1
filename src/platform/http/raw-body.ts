import type { FastifyInstance, FastifyRequest } from 'fastify';
import { badRequest } from './errors.ts';
import { type JsonObject, MalformedJson, readJson } from './json.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** How much of a body is read. */
    bodyBytesMax?: number;
  }
}

const defaultBytesMax = 256 * 1024;

/** The bytes of the body, or null when there were too many. */
type RawBody = Buffer | null;

/**
 * Collects bodies as bytes, whatever their Content-Type: a signature covers the bytes, and we
 * refuse a bad body in our own words, after the request was counted.
 */
export function takeRawBodies(
  api: FastifyInstance,
  mediaTypes: readonly string[],
  bodyBytesMax = defaultBytesMax,
): void {
  api.addHook('onRoute', (route) => {
    route.config = { bodyBytesMax, ...route.config };
  });
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', (request, stream, done) => {
    const bytesMax = bytesMaxOf(request);
    const chunks: Buffer[] = [];
    let length = 0;
    let isDone = false;
    const finish = (error: Error | null, body?: RawBody) => {
      if (!isDone) done(error, body);
      isDone = true;
    };
    // After a body that is too long, the rest is read and discarded, so that the client can read
    // our answer.
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > bytesMax) finish(null, null);
      else chunks.push(chunk);
    });
    stream.on('end', () => finish(null, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    stream.on('error', () => finish(badRequest('The body ended early.')));
  });

  // Fastify itself would refuse a malformed Content-Type, before the request was counted. It leaves
  // a merely unexpected one to us.
  api.addHook('preParsing', (request, _reply, payload, next) => {
    const isKnown = mediaTypes.includes(mediaTypeOf(request));
    if (!isKnown) request.headers['content-type'] = 'application/octet-stream';
    next(null, payload);
  });
}

/** The bytes and their media type; a 400 when the media type is not one of these. */
export function rawBodyOf<T extends string>(
  request: FastifyRequest,
  mediaTypes: readonly T[],
): { raw: Buffer; mediaType: T } {
  const raw = request.body as RawBody | undefined;
  if (raw === null) throw badRequest(`The body is larger than ${bytesMaxOf(request) / 1024} KiB.`);
  const mediaType = mediaTypes.find((one) => one === mediaTypeOf(request));
  if (mediaType === undefined) {
    throw badRequest(`The Content-Type header must be ${mediaTypes.join(' or ')}.`);
  }
  const problem = explainEncoding(request, raw);
  if (problem !== null) throw badRequest(problem);
  return { raw: raw ?? Buffer.alloc(0), mediaType };
}

const json = ['application/json'] as const;

/** The JSON object in the body; a 400 when the body is not one. */
export function jsonBodyOf(request: FastifyRequest): {
  value: JsonObject;
  compact: Buffer;
  raw: Buffer;
} {
  const { raw } = rawBodyOf(request, json);
  try {
    return { ...readJson(raw), raw };
  } catch (error) {
    if (error instanceof MalformedJson) throw badRequest(error.message);
    throw error;
  }
}

/** A body in another encoding would otherwise only be called malformed. */
function explainEncoding({ headers }: FastifyRequest, raw: Buffer | undefined): string | null {
  const encoding = headers['content-encoding'];
  const isGzip = raw !== undefined && raw[0] === 0x1f && raw[1] === 0x8b;
  if (isGzip || (encoding !== undefined && !/^(identity)?$/i.test(encoding))) {
    return `The body is compressed (${shown(encoding ?? 'gzip')}): send it uncompressed, without a Content-Encoding header.`;
  }
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(headers['content-type'] ?? '')?.[1];
  if (charset !== undefined && !/^(utf-?8|us-ascii)?$/i.test(charset)) {
    return `The Content-Type header names the charset ${shown(charset)}: send the body in UTF-8.`;
  }
  return null;
}

// The caller chose the text, so it may be long.
function shown(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

function bytesMaxOf(request: FastifyRequest): number {
  return request.routeOptions.config.bodyBytesMax ?? defaultBytesMax;
}

function mediaTypeOf(request: FastifyRequest): string {
  return request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? '';
}
