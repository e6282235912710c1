import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

// The browser application that web/build.mjs builds into web/dist/console.

const dist = new URL('../../../web/dist/console/', import.meta.url);
const compress = promisify(gzip);

const types: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
};

/**
 * Serves hashed files below `/assets/`, and the page at every other path except those below `/api`.
 */
export function serveApplication(app: FastifyInstance, { baseUrl }: { baseUrl: string }): void {
  const page = readPage();
  const pagePolicy = writePolicy(new URL(baseUrl).origin);
  const assets = new URL('assets/', dist);
  for (const name of existsSync(assets) ? readdirSync(assets) : []) {
    const bytes = readFileSync(new URL(name, assets));
    // The file is compressed at the first request, so that a process starts quickly.
    let compressed: Promise<Buffer> | null = null;
    app.get(`/assets/${name}`, async (request, reply) => {
      const takesGzip = String(request.headers['accept-encoding'] ?? '').includes('gzip');
      if (takesGzip) reply.header('content-encoding', 'gzip');
      compressed ??= compress(bytes, { level: 9 });
      return reply
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('vary', 'accept-encoding')
        .type(types[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream')
        .send(takesGzip ? await compressed : bytes);
    });
  }

  const sendPage = async (_request: FastifyRequest, reply: FastifyReply) => {
    if (page === null) {
      return reply
        .code(503)
        .type('text/plain; charset=utf-8')
        .send('The console is not built: run `npm run build:web`.\n');
    }
    return reply
      .header('content-security-policy', pagePolicy)
      .header('cache-control', 'no-cache')
      .type('text/html; charset=utf-8')
      .send(page);
  };
  app.get('/', sendPage);
  app.get('/*', async (request, reply) => {
    // A missing file or API route must not get the page.
    if (/^\/(api|assets)(\/|$|\?)/.test(request.url)) return reply.callNotFound();
    return sendPage(request, reply);
  });
}

function readPage(): string | null {
  const file = new URL('index.html', dist);
  return existsSync(file) ? readFileSync(file, 'utf8') : null;
}

/**
 * Scripts and styles are our own files, and no component inserts a style element (decision 0077).
 * Styles that a script sets on an element are always allowed.
 */
const writePolicy = (pageOrigin: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // The logos of merchants are on the shoppers' host.
    `img-src 'self' data: ${pageOrigin}`,
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
