import { readdirSync, readFileSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { PayPage } from './pay-page.ts';

// The hosted page as built by web/build.mjs: its renderer, and the files that a browser loads.

/** What web/pay/server.tsx is, told here so that the server need not know the page's sources. */
export type RenderPayPage = (
  page: PayPage | null,
  options: { path: string; nonce: string; script: { path: string; integrity: string } },
) => string;

/** A file whose address changes with its content, so it may be kept for ever. */
export type PayAsset = {
  /** Below `/pay/assets/`. */
  name: string;
  type: string;
  bytes: Buffer;
  gzip: Buffer;
  brotli: Buffer;
};

export type PayHtml = {
  /** Null is the page for a link that leads nowhere. The nonce is new for every answer. */
  render(
    page: PayPage | null,
    options: { token: string; nonce: string },
  ): { html: string; csp: string };
  assets: PayAsset[];
};

const dist = new URL('../../web/dist/pay/', import.meta.url);
const types: Record<string, string> = { js: 'text/javascript; charset=utf-8' };

/** Once per process: everything is in memory afterwards. */
export async function loadPayHtml(): Promise<PayHtml> {
  const { renderPayPage, manifest } = await loadBuild();
  const script = {
    path: `/pay/${manifest.script.file}`,
    integrity: manifest.script.integrity,
  };
  return {
    render(page, { token, nonce }) {
      const html = renderPayPage(page, { path: `/pay/${token}`, nonce, script });
      return { html, csp: contentSecurityPolicy(page, nonce) };
    },
    assets: readdirSync(new URL('assets/', dist)).map(readAsset),
  };
}

type Manifest = { script: { file: string; integrity: string } };

async function loadBuild(): Promise<{ renderPayPage: RenderPayPage; manifest: Manifest }> {
  try {
    const manifest: Manifest = JSON.parse(readFileSync(new URL('manifest.json', dist), 'utf8'));
    const { renderPayPage } = await import(new URL('server.js', dist).href);
    return { renderPayPage, manifest };
  } catch (cause) {
    throw new Error('The payment page is not built: run `npm run build:web`.', { cause });
  }
}

function readAsset(name: string): PayAsset {
  const bytes = readFileSync(new URL(`assets/${name}`, dist));
  return {
    name,
    type: types[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
    bytes,
    gzip: gzipSync(bytes, { level: 9 }),
    brotli: brotliCompressSync(bytes),
  };
}

/** Scripts only ours and the gateway's; frames only the gateway's; nothing may frame us. */
function contentSecurityPolicy(page: PayPage | null, nonce: string): string {
  const entry = page?.card_entry;
  const policy: Record<string, string[]> = {
    'default-src': ["'none'"],
    'script-src': page ? [`'nonce-${nonce}'`, ...(entry?.scriptOrigins ?? [])] : ["'none'"],
    'style-src': [`'nonce-${nonce}'`],
    'img-src': ['data:'],
    'connect-src': page ? ["'self'", ...(entry?.connectOrigins ?? [])] : ["'none'"],
    'frame-src': entry?.frameOrigins.length ? entry.frameOrigins : ["'none'"],
    'form-action': ["'none'"],
    'base-uri': ["'none'"],
    'frame-ancestors': ["'none'"],
  };
  return Object.entries(policy)
    .map(([name, values]) => `${name} ${values.join(' ')}`)
    .join('; ');
}
