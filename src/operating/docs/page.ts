import type { Environment } from '#platform/shared/environment.ts';
import { escapeHtml } from '#platform/shared/html.ts';

/** The query string of each style sheet and script, which changes with the file. */
export type Assets = Record<'docs.css' | 'docs.js' | 'doctor.js' | 'search.js', string>;

export type Site = { environment: Environment; assets: Assets };

type Page = {
  title: string;
  /** The part of the documentation that the page belongs to. */
  part: '/' | '/docs/guides' | '/docs' | '/docs/signature';
  /** The left column, folded above the text on a phone; `contentsTitle` names it. */
  contents: string;
  contentsTitle: string;
  main: string;
  /** The right column, shown on wide screens. */
  aside?: string;
  script?: 'doctor.js';
};

const parts = [
  ['/docs/guides', 'Guides'],
  ['/docs', 'Reference'],
  ['/docs/signature', 'Signature doctor'],
] as const;

/** The frame of every documentation page. */
export function writePage(site: Site, page: Page): string {
  const { assets, environment } = site;
  const script = (name: keyof Assets) =>
    `<script type="module" src="/docs/${name}${assets[name]}"></script>`;
  return `<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(page.title)} – Tranche</title>
<link rel="icon" href="/docs/logo.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/docs.css${assets['docs.css']}">
${script('docs.js')}
${page.script ? script(page.script) : ''}
</head>
<body data-search="/docs/search.js${assets['search.js']}">
<a class="skip" href="#main">Skip to the text</a>
<header>
<a class="brand" href="/docs/guides"><img src="/docs/logo.svg" alt="" width="28" height="28"><strong>Tranche</strong> <span class="environment">${environment}</span></a>
<div class="parts" role="navigation" aria-label="Documentation">
${parts.map(([href, title]) => partLink(href, title, page.part)).join('\n')}
</div>
</header>
<div class="layout${page.aside ? ' with-aside' : ''}">
<nav aria-label="${escapeHtml(page.contentsTitle)}"><details><summary>${escapeHtml(page.contentsTitle)}</summary>
${page.contents}
</details></nav>
<main id="main" tabindex="-1">
${page.main}
</main>
${page.aside ?? ''}
</div>
</body>
</html>
`;
}

function partLink(href: string, title: string, here: string): string {
  return `<a href="${href}"${href === here ? ' aria-current="page"' : ''}>${title}</a>`;
}
