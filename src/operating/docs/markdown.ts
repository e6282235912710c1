import { escapeHtml } from '#platform/shared/html.ts';
import { highlight } from './highlight.ts';

/** `Acting for merchants` → `acting-for-merchants`, as Git hosts derive it from a heading. */
export function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/['’]/g, '')
    .replace(/[^a-z0-9_]+/g, '-')
    .replace(/^-+|-+$/g, '');
}

export function renderCode(text: string, label = '', language = ''): string {
  const caption = label === '' ? '' : `<figcaption>${escapeHtml(label)}</figcaption>`;
  const code = highlight(text, language);
  return `<figure class="code">${caption}<pre tabindex="0"><code>${code}</code></pre></figure>`;
}

/** Where a text's links and pictures lead depends on the page that shows it. */
export type Surroundings = {
  /** The address of a link, or null if the target is not served; then the text stays plain. */
  link(href: string): string | null;
  /** The HTML for a picture. */
  picture(path: string, title: string): string;
  /** The HTML for a list of links to source files. Null if one of them is not such a file. */
  sources(files: { title: string; path: string }[]): string | null;
};

const alone: Surroundings = {
  link: (href) => (/^#[\w-]+$/.test(href) ? href : null),
  picture: (_path, title) => escapeHtml(title),
  sources: () => null,
};

/**
 * The part of Markdown that our own texts use: headings, paragraphs, lists, tables, notes,
 * pictures, fenced code; in a line: code, bold, links. The words after a fence's language are the
 * code's caption.
 */
export function renderMarkdown(text: string, around: Surroundings = alone): string {
  return splitBlocks(text.split('\n'))
    .map((block) => renderBlock(block, around))
    .join('\n');
}

const item = /^(?:[-*]|\d+\.) +/;

/** Empty lines separate blocks, except in code and in indented lines below a list item. */
function splitBlocks(lines: string[]): string[][] {
  const blocks: string[][] = [];
  let block: string[] = [];
  let isCode = false;
  const end = () => {
    while (block.at(-1) === '') block.pop();
    if (block.length > 0) blocks.push(block);
    block = [];
  };
  for (const line of lines) {
    const isFence = line.startsWith('```');
    const isInList = item.test(block[0] ?? '');
    if (isFence && !isCode) end();
    else if (!isCode && block.at(-1) === '' && !(isInList && /^(?: {2}|[-*] |\d+\. )/.test(line)))
      end();
    if (line !== '' || isCode || isInList) block.push(line);
    else end();
    if (isFence) {
      if (isCode) end();
      isCode = !isCode;
    }
  }
  end();
  return blocks;
}

function renderBlock(lines: string[], around: Surroundings): string {
  const [first = ''] = lines;
  const fence = /^```(\w*)(.*)$/.exec(first);
  if (fence) return renderCode(lines.slice(1, -1).join('\n'), fence[2]?.trim(), fence[1]);
  const heading = /^(#{1,4}) (.+)$/.exec(first);
  if (heading) {
    const [, { length: level } = '', title = ''] = heading;
    const html = `<h${level} id="${slug(title)}">${renderLine(title, around)}</h${level}>`;
    return lines.length === 1 ? html : html + renderBlock(lines.slice(1), around);
  }
  const picture = /^!\[([^\]]*)\]\(([^)]+)\)$/.exec(first);
  if (picture && lines.length === 1) return around.picture(picture[2] ?? '', picture[1] ?? '');
  if (first.startsWith('|')) return renderTable(lines, around);
  if (item.test(first)) return renderList(lines, around);
  if (first.startsWith('> ')) {
    const note = lines.map((line) => line.replace(/^> ?/, '')).join(' ');
    return `<p class="note">${renderLine(note, around)}</p>`;
  }
  return `<p>${renderLine(lines.join(' '), around)}</p>`;
}

/** A line that does not start an item continues the item before it. */
function renderList(lines: string[], around: Surroundings): string {
  const items: string[][] = [];
  for (const line of lines) {
    if (item.test(line)) items.push([line.replace(item, '')]);
    else items.at(-1)?.push(line.replace(/^ {2,3}/, ''));
  }
  const links = items.map((one) => /^\[([^\]]+)\]\(([^)]+)\)$/.exec(one.join(' ')));
  const files = links.flatMap((link) =>
    link ? [{ title: link[1] ?? '', path: link[2] ?? '' }] : [],
  );
  const sources = files.length === items.length ? around.sources(files) : null;
  if (sources !== null) return sources;
  const tag = /^\d/.test(lines[0] ?? '') ? 'ol' : 'ul';
  const content = (one: string[]) => {
    const [[...only] = [], ...more] = splitBlocks(one);
    const line = renderLine(only.join(' '), around);
    return line + more.map((block) => renderBlock(block, around)).join('\n');
  };
  return `<${tag}>${items.map((one) => `<li>${content(one)}</li>`).join('')}</${tag}>`;
}

function renderTable([head = '', , ...rows]: string[], around: Surroundings): string {
  const cells = (row: string) =>
    row
      .replace(/^\||\|\s*$/g, '')
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|'));
  const titles = cells(head);
  const heads = titles.map((title) => `<th scope="col">${renderLine(title, around)}</th>`);
  const body = rows.map((row) => {
    const columns = cells(row).map((cell, index) => {
      const title = index > 0 && titles[index] ? ` data-title="${escapeHtml(titles[index])}"` : '';
      return `<td${title}>${renderLine(cell, around)}</td>`;
    });
    return `<tr>${columns.join('')}</tr>`;
  });
  return `<table><thead><tr>${heads.join('')}</tr></thead><tbody>${body.join('')}</tbody></table>`;
}

export function renderLine(text: string, around: Surroundings = alone): string {
  return text
    .split(/(`[^`]+`)/)
    .map((part) =>
      part.startsWith('`') ? `<code>${escapeHtml(part.slice(1, -1))}</code>` : escapeHtml(part),
    )
    .join('')
    .replace(/\*\*(.+?)\*\*/g, '<strong>$1</strong>')
    .replace(/\[([^[\]]+)\]\(([^()\s]+)\)/g, (_whole, title: string, href: string) => {
      const address = around.link(href.replaceAll('&amp;', '&'));
      return address === null ? title : `<a href="${escapeHtml(address)}">${title}</a>`;
    });
}
