import type { FastifyInstance, FastifyRequest } from 'fastify';
import { badRequest } from './errors.ts';

const bodyBytesMax = 256 * 1024;

/** The bytes of the body, or null when there were too many. */
type RawBody = Buffer | null;

/**
 * Collects bodies as bytes, whatever their Content-Type: a signature covers the bytes, and we refuse
 * a bad body in our own words, after the request was counted.
 */
export function takeRawBodies(api: FastifyInstance, mediaTypes: readonly string[]): void {
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', (_request, stream, done) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const finish = (error: Error | null, body?: RawBody) => {
      stream.off('data', collect).off('end', end).off('error', fail);
      // Read and discard the rest, so that the client can read our answer.
      stream.on('error', () => {}).resume();
      done(error, body);
    };
    const collect = (chunk: Buffer) => {
      length += chunk.length;
      if (length > bodyBytesMax) finish(null, null);
      else chunks.push(chunk);
    };
    const end = () => finish(null, Buffer.concat(chunks));
    const fail = () => finish(badRequest('The body ended early.'));
    stream.on('data', collect).on('end', end).on('error', fail);
  });

  // Fastify itself would refuse a malformed Content-Type, before the request was counted. It leaves
  // a merely unexpected one to us.
  api.addHook('preParsing', async (request) => {
    const isKnown = mediaTypes.includes(mediaTypeOf(request));
    if (!isKnown) request.headers['content-type'] = 'application/octet-stream';
  });
}

/** The bytes and their media type; a 400 when that is not one of these. */
export function rawBodyOf<T extends string>(
  request: FastifyRequest,
  mediaTypes: readonly T[],
): { raw: Buffer; mediaType: T } {
  const raw = request.body as RawBody | undefined;
  if (raw === null) throw badRequest(`The body is larger than ${bodyBytesMax / 1024} KiB.`);
  const mediaType = mediaTypes.find((one) => one === mediaTypeOf(request));
  if (mediaType === undefined) {
    throw badRequest(`The Content-Type header must be ${mediaTypes.join(' or ')}.`);
  }
  return { raw: raw ?? Buffer.alloc(0), mediaType };
}

function mediaTypeOf(request: FastifyRequest): string {
  return request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? '';
}
