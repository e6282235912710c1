import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  type Audience,
  type DescribedRoute,
  type OpenApiDocument,
  routesOf,
} from '#platform/http/openapi.ts';
import { buildDocument } from '#platform/http/openapi-document.ts';
import type { Environment } from '#platform/shared/environment.ts';
import { paymentResult } from '#purchases/callbacks/callback.openapi.ts';
import { describeLegacy } from '#purchases/legacy/legacy.openapi.ts';
import { writeDoctor } from './doctor-page.ts';
import { writeFrontPage, writeNothingHere } from './front-page.ts';
import { tags, writeGuide } from './guide.ts';
import { readGuides, readVectors, writeGuidePage, writeOverview, writeShelf } from './guides.ts';
import { writeLlms } from './llms.ts';
import type { Site } from './page.ts';
import { writeReference } from './reference.ts';
import { readSdkArchive, type SdkArchive } from './sdk-archive.ts';
import { buildIndex } from './search.ts';

const documentPaths: Record<Audience, string> = {
  merchants: '/docs/api/v2',
  intermediaries: '/api-docs-intermediary',
};

const legacyPath = '/docs/api/v1';

/** The name of the page that is sent for unknown addresses. */
const nothingHere = '/docs/*';

type DocsDeps = { baseUrl: string; environment: Environment; legacySunset: string };

// Only our own files, and no connection anywhere: the search index is loaded as a script too.
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Serves the descriptions of the API, for programs and for people, and the guides. */
export async function docsRoutes(
  app: FastifyInstance,
  deps: DocsDeps,
  routes: DescribedRoute[],
): Promise<void> {
  const guides = readGuides();
  const sdk = readSdkArchive(deps.baseUrl);
  const files: Files = new Map();
  for (const path of [
    ...Object.values(documentPaths),
    legacyPath,
    ...['/', '/docs', '/docs/intermediary', '/docs/signature', '/docs/guides'],
    ...guides.flatMap(({ path }) => [path, `${path}.md`]),
    ...['docs.css', 'docs.js', 'doctor.js', 'search.js', 'logo.svg'].map((name) => `/docs/${name}`),
    '/docs/signature-vectors.json',
    ...[sdk.latest, sdk.path, '/docs/sdk/latest.json', '/llms.txt'],
  ]) {
    serve(app, files, path);
  }

  // The descriptions need the routes of all slices, so build them once all are registered.
  app.addHook('onReady', async () => {
    writeFiles(deps, routes, guides, files);
    writeSdk(sdk, files);
    files.set('/llms.txt', prepare('text/plain', writeLlms(deps.baseUrl, guides, sdk)));
  });
  app.get('/docs/*', async (request, reply) => {
    // A cache would ask for changes of this page at an address that has no page.
    reply.code(404).header('cache-control', 'no-store');
    return sendFile(request, reply, files.get(nothingHere) as StaticFile);
  });

  // Browsers ask for this address on every page, whatever its own icon is.
  const favicon = readFileSync(new URL('favicon.ico', import.meta.url));
  app.get('/favicon.ico', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=86400').type('image/x-icon').send(favicon),
  );
}

type Files = Map<string, StaticFile>;

/** Writes every page and document. */
function writeFiles(
  deps: DocsDeps,
  routes: DescribedRoute[],
  guides: ReturnType<typeof readGuides>,
  files: Files,
): void {
  const [merchants, intermediaries] = (['merchants', 'intermediaries'] as const).map((audience) =>
    describeApi(deps, audience, routes),
  ) as [OpenApiDocument, OpenApiDocument];
  const index = JSON.stringify(buildIndex(guides, merchants));
  // The address of a style sheet or script contains its version, so an old page never gets a new
  // one.
  const asset = (name: keyof Site['assets'], mediaType: string, text: string) => {
    files.set(`/docs/${name}`, prepare(mediaType, text));
    return { [name]: `?${fingerprint(text)}` };
  };
  const site: Site = {
    environment: deps.environment,
    assets: {
      ...asset('docs.css', 'text/css', ownFile('../../../web/tokens.css') + ownFile('docs.css')),
      ...asset('docs.js', 'text/javascript', ownFile('../../../web/dist/docs/docs.js')),
      ...asset('doctor.js', 'text/javascript', ownFile('../../../web/dist/docs/doctor.js')),
      ...asset('search.js', 'text/javascript', `export default ${index};`),
    } as Site['assets'],
  };
  const page = (path: string, html: string) => files.set(path, prepare('text/html', html));
  files.set('/docs/signature-vectors.json', prepare('application/json', readVectors()));
  files.set('/docs/logo.svg', prepare('image/svg+xml', ownFile('logo.svg')));
  for (const [audience, path, document] of [
    ['merchants', '/docs', merchants],
    ['intermediaries', '/docs/intermediary', intermediaries],
  ] as const) {
    const documentPath = documentPaths[audience];
    page(path, writeReference(site, document, { audience, documentPath }));
    files.set(documentPath, prepare('application/json', JSON.stringify(document)));
  }
  files.set(legacyPath, prepare('application/json', JSON.stringify(describeLegacy(deps))));
  page('/', writeFrontPage(site, deps.baseUrl, writeShelf(guides, '/')));
  page(nothingHere, writeNothingHere(site, writeShelf(guides, nothingHere)));
  page('/docs/guides', writeOverview(site, guides));
  page('/docs/signature', writeDoctor(site, writeShelf(guides, '/docs/signature')));
  for (const guide of guides) {
    page(guide.path, writeGuidePage(site, guides, guide));
    files.set(`${guide.path}.md`, prepare('text/markdown', guide.text));
  }
}

function writeSdk({ latest, path, content, about }: SdkArchive, files: Files): void {
  const archive: StaticFile = {
    type: 'application/gzip',
    etag: `W/"${fingerprint(content)}"`,
    plain: content,
    // It is compressed already.
    gzipped: null,
  };
  files.set(latest, archive);
  files.set(path, archive);
  files.set('/docs/sdk/latest.json', prepare('application/json', JSON.stringify(about)));
}

function serve(app: FastifyInstance, files: Files, path: string): void {
  app.get(path, async (request, reply) => {
    const file = files.get(path) as StaticFile;
    reply.header('cache-control', 'public, max-age=300').header('etag', file.etag);
    if (request.headers['if-none-match']?.includes(file.etag)) {
      return reply.header('vary', 'accept-encoding').code(304).send();
    }
    return sendFile(request, reply, file);
  });
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: StaticFile): FastifyReply {
  reply.header('vary', 'accept-encoding').header('content-type', file.type);
  if (file.type.startsWith('text/html')) {
    reply.header('content-security-policy', contentSecurityPolicy);
    reply.header('referrer-policy', 'no-referrer');
  }
  const accepted = String(request.headers['accept-encoding'] ?? '');
  if (file.gzipped === null || !/\bgzip\b/.test(accepted)) return reply.send(file.plain);
  return reply.header('content-encoding', 'gzip').send(file.gzipped);
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

type StaticFile = { type: string; etag: string; plain: Buffer; gzipped: Buffer | null };

/** Weak, because the same file is served plain and compressed. */
function prepare(mediaType: string, text: string): StaticFile {
  return {
    type: mediaType === 'application/json' ? mediaType : `${mediaType}; charset=utf-8`,
    etag: `W/"${fingerprint(text)}"`,
    plain: Buffer.from(text),
    gzipped: gzipSync(text),
  };
}

function fingerprint(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}

function ownFile(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}
