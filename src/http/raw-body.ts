import type { FastifyInstance, FastifyRequest } from 'fastify';
import { badRequest } from './errors.ts';

const mostBodyBytes = 256 * 1024;

/** The body as it came, or null when it was larger than we read. */
type RawBody = Buffer | null;

/**
 * Bodies are taken as bytes, whatever they say they are: a signature covers them, and every refusal
 * of them is ours to word, once we know who is asking.
 */
export function takeRawBodies(api: FastifyInstance, mediaTypes: readonly string[]): void {
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', (_request, stream, done) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const finish = (error: Error | null, body?: RawBody) => {
      stream.off('data', collect).off('end', end).off('error', fail);
      // Whatever still comes is let go by, not kept.
      stream.on('error', () => {}).resume();
      done(error, body);
    };
    const collect = (chunk: Buffer) => {
      length += chunk.length;
      if (length > mostBodyBytes) finish(null, null);
      else chunks.push(chunk);
    };
    const end = () => finish(null, Buffer.concat(chunks));
    const fail = () => finish(badRequest('The body ended early.'));
    stream.on('data', collect).on('end', end).on('error', fail);
  });

  // Fastify refuses a Content-Type that is none before the request was counted; one that is merely
  // another is left to us.
  api.addHook('preParsing', async (request) => {
    const isKnown = mediaTypes.includes(mediaTypeOf(request));
    if (!isKnown) request.headers['content-type'] = 'application/octet-stream';
  });
}

/** The bytes and what they are, which is one of these; else a 400. */
export function rawBodyOf<T extends string>(
  request: FastifyRequest,
  mediaTypes: readonly T[],
): { raw: Buffer; mediaType: T } {
  const raw = request.body as RawBody | undefined;
  if (raw === null) throw badRequest(`The body is larger than ${mostBodyBytes / 1024} KiB.`);
  const mediaType = mediaTypes.find((one) => one === mediaTypeOf(request));
  if (mediaType === undefined) {
    throw badRequest(`The Content-Type header must be ${mediaTypes.join(' or ')}.`);
  }
  return { raw: raw ?? Buffer.alloc(0), mediaType };
}

function mediaTypeOf(request: FastifyRequest): string {
  return request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? '';
}
