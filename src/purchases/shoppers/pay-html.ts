import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import type { Language } from '#platform/shared/language.ts';
import { lazily } from '#platform/shared/lazily.ts';
import { type PageWords, type Words, words } from '#platform/shared/words/words.ts';
import type { LinkPage, LinkPrint } from '#purchases/payment-links/link-page.ts';
import type { PayPage } from './pay-page.ts';

// The hosted page as web/build.mjs builds it: its renderer and the files that a browser loads.

/**
 * The type of the renderer in web/pay/server.tsx, repeated because the service does not import page
 * sources.
 */
export type RenderPayPage = (
  page: PayPage | null,
  options: {
    path: string;
    nonce: string;
    script: { path: string; integrity: string };
    language: Language;
    words: PageWords;
  },
) => Buffer;

export type LinkWords = Pick<Words, 'page' | 'link'>;

/** The exports of web/pay/server.tsx. */
export type PayServer = {
  renderPayPage: RenderPayPage;
  /** Null renders the page for an unknown link. */
  renderLinkPage(
    page: LinkPage | null,
    options: { path: string; nonce: string; language: Language; words: LinkWords },
  ): string;
  renderLinkPrint(
    page: LinkPrint,
    options: { nonce: string; language: Language; words: LinkWords },
  ): string;
};

/** A file whose name changes with its content, so that browsers may cache it for ever. */
export type PayAsset = {
  /** The path below `/pay/assets/`. */
  name: string;
  type: string;
  bytes: Buffer;
  /** The compressed content, by the name of its encoding. */
  gzip(): Promise<Buffer>;
  br(): Promise<Buffer>;
};

export type PayHtml = {
  /** Null renders the page for an unknown link. The nonce is new for every response. */
  render(
    page: PayPage | null,
    options: { token: string; nonce: string; language: Language },
  ): { html: Buffer; csp: string };
  assets: PayAsset[];
};

const dist = new URL('../../../web/dist/pay/', import.meta.url);
const types: Record<string, string> = { js: 'text/javascript; charset=utf-8' };

/** Loads the files once per process and keeps them in memory. */
export async function loadPayHtml(): Promise<PayHtml> {
  const { server, manifest } = await loadPayServer();
  const script = {
    path: `/pay/${manifest.script.file}`,
    integrity: manifest.script.integrity,
  };
  return {
    render(page, { token, nonce, language }) {
      const html = server.renderPayPage(page, {
        path: `/pay/${token}`,
        nonce,
        script,
        language,
        words: words[language].page,
      });
      return { html, csp: contentSecurityPolicy(page, nonce) };
    },
    assets: readdirSync(new URL('assets/', dist)).map(readAsset),
  };
}

type Manifest = { script: { file: string; integrity: string } };

export async function loadPayServer(): Promise<{ server: PayServer; manifest: Manifest }> {
  try {
    const manifest: Manifest = JSON.parse(readFileSync(new URL('manifest.json', dist), 'utf8'));
    return { server: await import(new URL('server.js', dist).href), manifest };
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
    // Compress a file when it is first requested, so that a process starts quickly.
    gzip: lazily(() => promisify(gzip)(bytes, { level: 9 })),
    br: lazily(() => promisify(brotliCompress)(bytes)),
  };
}

/** Allows our scripts and the gateway's, and the gateway's frames. No other page may frame ours. */
function contentSecurityPolicy(page: PayPage | null, nonce: string): string {
  const entry = page?.card_entry;
  const policy: Record<string, string[]> = {
    'default-src': ["'none'"],
    'script-src': page ? [`'nonce-${nonce}'`, ...(entry?.scriptOrigins ?? [])] : ["'none'"],
    'style-src': [`'nonce-${nonce}'`],
    'img-src': ["'self'", 'data:'],
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
