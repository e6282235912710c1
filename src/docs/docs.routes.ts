import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { paymentResult } from '../callbacks/callback.openapi.ts';
import {
  type Audience,
  buildDocument,
  type DescribedRoute,
  type OpenApiDocument,
  routesOf,
} from '../http/openapi.ts';
import type { Environment } from '../integrations/integration.ts';
import { describeLegacy } from '../legacy/legacy.openapi.ts';
import { tags, writeGuide } from './guide.ts';
import { writeReference } from './reference.ts';

const documentPaths: Record<Audience, string> = {
  merchants: '/docs/api/v2',
  intermediaries: '/api-docs-intermediary',
};

const legacyPath = '/docs/api/v1';

type DocsDeps = { baseUrl: string; environment: Environment; legacySunset: string };

// Nothing but our own files.
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The descriptions of the API, for programs and for people. They change per deployment only. */
export async function docsRoutes(
  app: FastifyInstance,
  deps: DocsDeps,
  routes: DescribedRoute[],
): Promise<void> {
  const files = new Map<string, StaticFile>();
  for (const path of [...Object.values(documentPaths), '/docs', '/docs/intermediary']) serve(path);
  serve(legacyPath);
  for (const name of ['reference.css', 'reference.js', 'mark.svg']) serve(`/docs/${name}`);

  // The other slices' routes are known only when all are registered.
  app.addHook('onReady', async () => {
    const css = ownFile('../../web/tokens.css') + ownFile('reference.css');
    const js = ownFile('reference.js');
    files.set('/docs/reference.css', prepare('text/css', css));
    files.set('/docs/reference.js', prepare('text/javascript', js));
    files.set('/docs/mark.svg', prepare('image/svg+xml', ownFile('mark.svg')));
    // The address of a style sheet or script changes with it, so an old page never meets a new one.
    const assets = { css: `?${fingerprint(css)}`, js: `?${fingerprint(js)}` };
    files.set(legacyPath, prepare('application/json', JSON.stringify(describeLegacy(deps))));
    for (const audience of ['merchants', 'intermediaries'] as const) {
      const document = describeApi(deps, audience, routes);
      const documentPath = documentPaths[audience];
      const page = writeReference(document, { audience, documentPath, assets, ...deps });
      files.set(documentPath, prepare('application/json', JSON.stringify(document)));
      files.set(
        audience === 'merchants' ? '/docs' : '/docs/intermediary',
        prepare('text/html', page),
      );
    }
  });

  function serve(path: string): void {
    app.get(path, async (request, reply) => {
      const file = files.get(path) as StaticFile;
      reply.header('cache-control', 'public, max-age=300').header('etag', file.etag);
      reply.header('vary', 'accept-encoding');
      if (request.headers['if-none-match']?.includes(file.etag)) return reply.code(304).send();
      reply.header('content-type', file.type);
      if (file.type.startsWith('text/html')) {
        reply.header('content-security-policy', contentSecurityPolicy);
        reply.header('referrer-policy', 'no-referrer');
      }
      if (!/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) {
        return reply.send(file.plain);
      }
      return reply.header('content-encoding', 'gzip').send(file.gzipped);
    });
  }
}

function describeApi(
  deps: DocsDeps,
  audience: Audience,
  routes: DescribedRoute[],
): OpenApiDocument {
  const own = routesOf(audience, routes);
  const description = writeGuide({ audience, ...deps }, own);
  const about = { audience, baseUrl: deps.baseUrl, description, tags, webhooks: [paymentResult] };
  return buildDocument(about, own);
}

type StaticFile = { type: string; etag: string; plain: Buffer; gzipped: Buffer };

/** Weak, because the same file goes out plain and compressed. */
function prepare(mediaType: string, text: string): StaticFile {
  return {
    type: mediaType === 'application/json' ? mediaType : `${mediaType}; charset=utf-8`,
    etag: `W/"${fingerprint(text)}"`,
    plain: Buffer.from(text),
    gzipped: gzipSync(text),
  };
}

function fingerprint(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}

function ownFile(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}
