import type { OpenApiDocument } from '#platform/http/openapi.ts';
import type { Guide } from './guides.ts';
import { slug } from './markdown.ts';
import { chaptersOf, groupsOf } from './reference.ts';
import type { Found } from './search-entry.ts';

/** The search index. The browser fetches all of it when a reader opens the search. */
export function buildIndex(guides: Guide[], document: OpenApiDocument): Found[] {
  return [doctor, ...chaptersOfReference(document), ...guides.flatMap(chaptersOfGuide)];
}

const doctor: Found = {
  title: 'Signature doctor',
  page: 'Tools',
  path: '/docs/signature',
  text: 'X-Signature does not match 400: find out which mistake caused it. Hex, URL-safe Base64, client secret, pretty-printed, trailing newline.',
};

function chaptersOfGuide(guide: Guide): Found[] {
  const [intro = '', ...chapters] = guide.text.split(/^(?=## )/m);
  const page = guide.title;
  // Only the beginning of each chapter for operators is indexed. Most readers who search are
  // merchants, and the operators' guides are longer than all guides for merchants together.
  const textMax = guide.group === 'Operate' ? 300 : Number.POSITIVE_INFINITY;
  return [
    {
      title: guide.title,
      page,
      path: guide.path,
      text: plain(intro.replace(/^# .+\n/, '')).slice(0, textMax),
    },
    ...chapters.map((chapter) => {
      const [heading = '', ...rest] = chapter.split('\n');
      const title = heading.slice(3);
      const path = `${guide.path}#${slug(title)}`;
      return { title: plain(title), page, path, text: plain(rest.join('\n')).slice(0, textMax) };
    }),
  ];
}

function chaptersOfReference(document: OpenApiDocument): Found[] {
  const page = 'API reference';
  const { description } = document.info;
  const chapters = chaptersOf(document).map(({ id, title }) => {
    const [, text = ''] = description.split(`## ${title}\n`);
    return { title, page, path: `/docs#${id}`, text: plain(text.split(/^## /m)[0] ?? '') };
  });
  const operations = groupsOf(document).flatMap(({ entries }) =>
    entries.map(({ operation, method, path }) => ({
      title: String(operation.summary),
      page,
      path: `/docs#${operation.operationId}`,
      text: `${method.toUpperCase()} ${path} ${plain(String(operation.description))}`,
    })),
  );
  return [...chapters, ...operations];
}

/** Plain text without Markdown's markup. Commands stay, because readers search for them. */
function plain(markdown: string): string {
  return markdown
    .replace(/^```.*$/gm, '')
    .replace(/!?\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replace(/^[|>#\s-]+|[`|]|\*\*/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}
