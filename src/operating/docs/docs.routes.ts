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
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import { lazily } from '#platform/shared/lazily.ts';
import { paymentResult } from '#purchases/callbacks/callback.openapi.ts';
import { disputeUpdated } from '#purchases/disputes/dispute.openapi.ts';
import { describeLegacy } from '#purchases/legacy/legacy.openapi.ts';
import { payoutUpdated } from '#purchases/payouts/payout.openapi.ts';
import { refundUpdated } from '#purchases/refunds/refund.openapi.ts';
import { writeDoctor } from './doctor-page.ts';
import { writeFrontPage, writeNothingHere } from './front-page.ts';
import { tags, writeGuide } from './guide.ts';
import {
  listPictures,
  readGuides,
  readVectors,
  writeGuidePage,
  writeOverview,
  writeShelf,
} from './guides.ts';
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

/** The key of the page that is sent for unknown paths. No path is equal to this key. */
const nothingHere = '*';

type DocsDeps = {
  baseUrl: string;
  environment: Environment;
  legacySunset: string;
  page: Pick<HostedPageSettings, 'mailboxUrl' | 'sandbox'>;
};

// Allows only our own files and no connections. Even the search index is loaded as a script.
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
  const pictures = listPictures();
  const files: Files = new Map();
  addPages(deps, routes, guides, files);
  addSdk(sdk, files);
  addFile(files, '/llms.txt', 'text/plain', () => writeLlms(deps.baseUrl, guides, sdk));
  for (const { path, read } of pictures) files.set(path, () => compressed('image/png', read()));
  for (const path of ['/', '/docs', documentPaths.intermediaries, '/llms.txt']) {
    app.get(path, async (request, reply) => serve(request, reply, fileOf(files, path)));
  }
  // One route for all the others, because a process that starts spends more on each route than on
  // everything else that this function does.
  app.get<{ Params: { '*': string } }>('/docs/*', async (request, reply) => {
    const write = files.get(`/docs/${request.params['*']}`);
    if (write) return serve(request, reply, write());
    // Not cached, because a cache could not revalidate the page at an address without a file.
    reply.code(404).header('cache-control', 'no-store');
    const file = fileOf(files, nothingHere);
    writeHeaders(reply, file);
    return sendFile(request, reply, file);
  });

  // Browsers request this address on every page, whatever icon the page names.
  const favicon = readFileSync(new URL('favicon.ico', import.meta.url));
  app.get('/favicon.ico', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=86400').type('image/x-icon').send(favicon),
  );
}

/** Each file is written when it is first requested, so that a process starts quickly. */
type Files = Map<string, () => StaticFile>;

function addFile(files: Files, path: string, mediaType: string, write: () => string): void {
  files.set(
    path,
    lazily(() => prepare(mediaType, write())),
  );
}

const fileOf = (files: Files, path: string) => (files.get(path) as () => StaticFile)();

/**
 * Adds every page and document. They describe the routes of all slices, even of those added later.
 */
function addPages(
  deps: DocsDeps,
  routes: DescribedRoute[],
  guides: ReturnType<typeof readGuides>,
  files: Files,
): void {
  const merchants = lazily(() => describeApi(deps, 'merchants', routes));
  const intermediaries = lazily(() => describeApi(deps, 'intermediaries', routes));
  const texts = {
    'docs.css': lazily(() => ownFile('../../../web/tokens.css') + ownFile('docs.css')),
    'docs.js': lazily(() => ownFile('../../../web/dist/docs/docs.js')),
    'doctor.js': lazily(() => ownFile('../../../web/dist/docs/doctor.js')),
    'search.js': lazily(() => `export default ${JSON.stringify(buildIndex(guides, merchants()))};`),
  };
  for (const [name, text] of Object.entries(texts)) {
    const mediaType = name.endsWith('.css') ? 'text/css' : 'text/javascript';
    addFile(files, `/docs/${name}`, mediaType, text);
  }
  // The address of a style sheet or script contains its version, so an old page never gets a new
  // one.
  const versions = () =>
    Object.entries(texts).map(([name, text]) => [name, `?${fingerprint(text())}`]);
  const site = lazily(
    (): Site => ({ environment: deps.environment, assets: Object.fromEntries(versions()) }),
  );
  const page = (path: string, write: (site: Site) => string) =>
    addFile(files, path, 'text/html', () => write(site()));
  addFile(files, '/docs/signature-vectors.json', 'application/json', readVectors);
  addFile(files, '/docs/logo.svg', 'image/svg+xml', () => ownFile('logo.svg'));
  for (const [audience, path, document] of [
    ['merchants', '/docs', merchants],
    ['intermediaries', '/docs/intermediary', intermediaries],
  ] as const) {
    const documentPath = documentPaths[audience];
    page(path, (site) => writeReference(site, document(), { audience, documentPath }));
    addFile(files, documentPath, 'application/json', () => JSON.stringify(document()));
  }
  addFile(files, legacyPath, 'application/json', () => JSON.stringify(describeLegacy(deps)));
  const shelf = (path: string) => writeShelf(guides, path);
  page('/', (site) => writeFrontPage(site, deps, shelf('/')));
  page(nothingHere, (site) => writeNothingHere(site, shelf(nothingHere)));
  page('/docs/guides', (site) => writeOverview(site, guides));
  page('/docs/signature', (site) => writeDoctor(site, shelf('/docs/signature')));
  for (const guide of guides) {
    page(guide.path, (site) => writeGuidePage(site, guides, guide));
    addFile(files, `${guide.path}.md`, 'text/markdown', () => guide.text);
  }
}

function addSdk({ latest, path, content, about }: SdkArchive, files: Files): void {
  const archive = compressed('application/gzip', content);
  files.set(latest, () => archive);
  files.set(path, () => archive);
  addFile(files, '/docs/sdk/latest.json', 'application/json', () => JSON.stringify(about));
}

function serve(request: FastifyRequest, reply: FastifyReply, file: StaticFile): FastifyReply {
  reply.header('cache-control', 'public, max-age=300').header('etag', file.etag);
  // A browser replaces the headers of its copy with those of a 304, so both answers have the same
  // ones.
  writeHeaders(reply, file);
  if (request.headers['if-none-match']?.includes(file.etag)) return reply.code(304).send();
  return sendFile(request, reply, file);
}

function writeHeaders(reply: FastifyReply, file: StaticFile): void {
  reply.header('vary', 'accept-encoding').header('content-type', file.type);
  if (file.type.startsWith('text/html')) {
    reply.header('content-security-policy', contentSecurityPolicy);
    reply.header('referrer-policy', 'no-referrer');
  }
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: StaticFile): FastifyReply {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  if (file.gzipped === null || !/\bgzip\b/.test(accepted)) return reply.send(file.plain);
  return reply.header('content-encoding', 'gzip').send(file.gzipped);
}

const webhooks = [paymentResult, refundUpdated, disputeUpdated, payoutUpdated];

function describeApi(
  deps: DocsDeps,
  audience: Audience,
  routes: DescribedRoute[],
): OpenApiDocument {
  const own = routesOf(audience, routes);
  const description = writeGuide({ audience, ...deps }, own);
  const about = { audience, baseUrl: deps.baseUrl, description, tags, webhooks };
  return buildDocument(about, own);
}

type StaticFile = { type: string; etag: string; plain: Buffer; gzipped: Buffer | null };

/** A file that is already compressed. */
const compressed = (type: string, content: Buffer): StaticFile => ({
  type,
  etag: `W/"${fingerprint(content)}"`,
  plain: content,
  gzipped: null,
});

/** The ETag is weak, because the same file is served both plain and compressed. */
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
