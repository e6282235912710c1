import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join, normalize } from 'node:path/posix';
import { fileURLToPath } from 'node:url';
import { readImage } from '#platform/shared/file-type.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import { renderCode, renderMarkdown, type Surroundings, slug } from './markdown.ts';
import { type Site, writePage } from './page.ts';

/**
 * The guides: Markdown files of the repository, shown as pages. In the repository their links and
 * pictures work as they are; here the links lead to pages.
 */
export type Guide = {
  name: string;
  path: string;
  file: string;
  group: string;
  title: string;
  summary: string;
  text: string;
};

const root = fileURLToPath(new URL('../../..', import.meta.url));

const shelf: [group: string, files: string[]][] = [
  ['Start', ['docs/merchants/quickstart.md', 'docs/merchants/payments.md']],
  [
    'Build',
    [
      'docs/merchants/signing.md',
      'docs/merchants/callbacks.md',
      'docs/merchants/payment-links.md',
      'docs/merchants/refunds.md',
      'docs/merchants/plan-page.md',
      'docs/merchants/errors-and-limits.md',
      'docs/merchants/intermediaries.md',
    ],
  ],
  [
    'Test and launch',
    [
      'docs/merchants/testing.md',
      'docs/merchants/test-cards.md',
      'docs/merchants/going-live.md',
      'docs/merchants/staff.md',
      'docs/migrating-from-v1.md',
    ],
  ],
  [
    'Operate',
    [
      'docs/operators/running.md',
      'docs/operators/settings.md',
      'docs/operators/merchants.md',
      'docs/operators/console.md',
      'docs/operators/cli.md',
      'docs/operators/runbook.md',
      'docs/operators/scale.md',
      'docs/operators/privacy.md',
      'docs/operators/asvs.md',
    ],
  ],
  ['Changes', ['CHANGELOG.md']],
];

/** Reads every guide. Each begins with its title and a paragraph about its subject. */
export function readGuides(): Guide[] {
  return shelf.flatMap(([group, files]) =>
    files.map((file) => {
      const text = readFileSync(root + file, 'utf8');
      const [, title = '', summary = ''] = /^# (.+)\n\n([\s\S]+?)\n\n/.exec(text) ?? [];
      const name = (file.split('/').at(-1) as string).replace(/\.md$/, '').toLowerCase();
      const path = `/docs/guides/${name}`;
      return { name, path, file, group, title, summary: plainLine(summary), text };
    }),
  );
}

/** A paragraph on one line, without the addresses of its links. */
const plainLine = (text: string) =>
  text.replaceAll('\n', ' ').replace(/\[([^\]]+)\]\([^)]*\)/g, '$1');

const vectorsFile = 'docs/merchants/signature-vectors.json';

/** Test vectors, for readers who compute signatures in another programming language. */
export function readVectors(): string {
  return readFileSync(root + vectorsFile, 'utf8');
}

/**
 * The default address of a sandbox, as the guides write it. On the served pages such a link leads
 * to the same path on the page's own origin.
 */
const ownOrigin = 'http://localhost:3000';

function surroundings(guides: Guide[], file: string): Surroundings {
  const resolve = (path: string) => normalize(join(dirname(file), path));
  return {
    link(href) {
      if (href.startsWith('#')) return href;
      if (href.startsWith(ownOrigin)) return href.slice(ownOrigin.length) || '/';
      if (/^https?:/.test(href)) return href;
      const [path = '', anchor] = href.split('#');
      if (resolve(path) === vectorsFile) return '/docs/signature-vectors.json';
      const guide = guides.find((one) => one.file === resolve(path));
      // Files that exist only in the repository are named, not linked.
      return guide ? guide.path + (anchor ? `#${anchor}` : '') : null;
    },
    picture(path, title) {
      if (path.endsWith('.png')) return renderPicture(resolve(path), title);
      // An inlined picture gets the page's colours. Its own styles are removed, because the page's
      // policy forbids them.
      const svg = readFileSync(root + resolve(path), 'utf8').replace(
        /<style>[\s\S]*?<\/style>/,
        '',
      );
      return `<figure class="picture">${svg.trim()}<figcaption>${escapeHtml(title)}</figcaption></figure>`;
    },
    sources(files) {
      const paths = files.map(({ title, path }) => ({ title, path: resolve(path) }));
      if (!paths.every(({ path }) => /\.(?!md$)\w+$/.test(path) && existsSync(root + path))) {
        return null;
      }
      const figures = paths.map(({ title, path }) => {
        const code = readFileSync(root + path, 'utf8').trimEnd();
        return renderCode(code, title, extname(path).slice(1));
      });
      return `<div class="tabs">${figures.join('\n')}</div>`;
    },
  };
}

const picturesFolder = 'docs/pictures';

/** The pictures of pages, which `npm run pictures` makes. */
export function listPictures(): { path: string; read(): Buffer }[] {
  return readdirSync(root + picturesFolder).map((name) => ({
    path: `/${picturesFolder}/${name}`,
    read: () => readFileSync(`${root}${picturesFolder}/${name}`),
  }));
}

/**
 * The alternative text is empty, because the caption says what the picture shows. The size is given
 * so that the text does not jump when the picture is loaded.
 */
function renderPicture(file: string, title: string): string {
  const size = readImage(readFileSync(root + file));
  assert(size && file.startsWith(`${picturesFolder}/`), `${file} is one of the pictures`);
  return `<figure class="picture"><img src="/${file}" alt="" width="${size.width}" height="${size.height}" loading="lazy"><figcaption>${escapeHtml(title)}</figcaption></figure>`;
}

/** Headings of the second level, for the table of contents beside the text. */
function chaptersOf({ text }: Guide): { id: string; title: string }[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '');
  return [...prose.matchAll(/^## (.+)$/gm)].map(([, title = '']) => ({
    id: slug(title),
    title: title.replaceAll('`', ''),
  }));
}

export function writeGuidePage(site: Site, guides: Guide[], guide: Guide): string {
  const at = guides.indexOf(guide);
  const neighbour = (other: Guide | undefined, word: string, rel: string) =>
    other
      ? `<a class="${rel}" rel="${rel}" href="${other.path}"><span>${word}</span> ${escapeHtml(other.title)}</a>`
      : '';
  const [intro = '', ...rest] = guide.text.replace(/^# .+\n\n/, '').split('\n\n');
  const around = surroundings(guides, guide.file);
  const chapters = chaptersOf(guide);
  return writePage(site, {
    title: guide.title,
    part: '/docs/guides',
    contents: writeShelf(guides, guide.path),
    contentsTitle: 'Guides',
    main: `<article class="guide">
<h1>${escapeHtml(guide.title)}</h1>
<div class="intro">${renderMarkdown(intro, around)}</div>
${renderMarkdown(rest.join('\n\n'), around)}
</article>
<div class="neighbours">${neighbour(guides[at - 1], 'Previous', 'prev')}${neighbour(guides[at + 1], 'Next', 'next')}</div>`,
    aside:
      chapters.length < 3
        ? ''
        : `<aside class="beside" aria-label="On this page"><p>On this page</p>
<ul>${chapters.map(({ id, title }) => `<li><a href="#${id}">${escapeHtml(title)}</a></li>`).join('')}</ul></aside>`,
  });
}

export function writeShelf(guides: Guide[], here: string): string {
  const link = (path: string, title: string) =>
    `<li><a href="${path}"${path === here ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a></li>`;
  const groups = shelf.map(([group]) => {
    const own = guides.filter((guide) => guide.group === group);
    const first = group === 'Start' ? link('/docs/guides', 'Overview') : '';
    return `<p>${group}</p>\n<ul>${first}${own.map(({ path, title }) => link(path, title)).join('')}</ul>`;
  });
  return `${groups.join('\n')}
<p>Look up</p>
<ul>${link('/docs', 'API reference')}${link('/docs/signature', 'Signature doctor')}</ul>`;
}

/** The start page of the guides. */
export function writeOverview(site: Site, guides: Guide[]): string {
  const around = surroundings(guides, 'docs/merchants/overview.md');
  const groups = shelf.map(([group]) => {
    const cards = guides
      .filter((guide) => guide.group === group)
      .map(
        ({ path, title, summary }) =>
          `<li><a href="${path}">${escapeHtml(title)}</a>${renderMarkdown(firstSentence(summary), { ...around, link: () => null })}</li>`,
      );
    return `<h2 id="${slug(group)}">${group}</h2>\n<ul class="cards">${cards.join('')}</ul>`;
  });
  const text = readFileSync(`${root}docs/merchants/overview.md`, 'utf8');
  const [title = '', intro = '', ...rest] = text.split('\n\n');
  return writePage(site, {
    title: 'Guides',
    part: '/docs/guides',
    contents: writeShelf(guides, '/docs/guides'),
    contentsTitle: 'Guides',
    main: `<article class="guide overview">
<h1>${escapeHtml(title.replace(/^# /, ''))}</h1>
<div class="intro">${renderMarkdown(intro, around)}</div>
${renderMarkdown(rest.join('\n\n'), around)}
${groups.join('\n')}
</article>`,
  });
}

function firstSentence(text: string): string {
  return /^.+?\.(?= |$)/.exec(text)?.[0] ?? text;
}
