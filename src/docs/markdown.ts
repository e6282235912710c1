export function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
  };
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}

/** `Acting for merchants` → `acting-for-merchants` */
export function slug(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

export function renderCode(text: string, label = ''): string {
  const caption = label === '' ? '' : `<figcaption>${escapeHtml(label)}</figcaption>`;
  return `<figure class="code">${caption}<pre tabindex="0"><code>${escapeHtml(text)}</code></pre></figure>`;
}

/**
 * The part of Markdown that our own descriptions use: headings of the second level, paragraphs,
 * lists, tables, fenced code; in a line: code, bold, links.
 */
export function renderMarkdown(text: string): string {
  return text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part) => {
      const fenced = /^```\w*\n([\s\S]*)\n```$/.exec(part);
      if (fenced) return renderCode(fenced[1] ?? '');
      return part
        .split(/\n{2,}/)
        .filter((block) => block.trim() !== '')
        .map((block) => renderBlock(block.trim().split('\n')))
        .join('');
    })
    .join('');
}

function renderBlock(lines: string[]): string {
  const [first = ''] = lines;
  if (first.startsWith('## ')) {
    const title = first.slice(3);
    return `<h2 id="${slug(title)}">${renderLine(title)}</h2>`;
  }
  if (first.startsWith('|')) return renderTable(lines);
  if (first.startsWith('- ')) return renderList('ul', lines, /^- /);
  if (/^\d+\. /.test(first)) return renderList('ol', lines, /^\d+\. /);
  return `<p>${renderLine(lines.join(' '))}</p>`;
}

function renderList(tag: 'ul' | 'ol', lines: string[], marker: RegExp): string {
  const items = lines.map((line) => `<li>${renderLine(line.replace(marker, ''))}</li>`);
  return `<${tag}>${items.join('')}</${tag}>`;
}

function renderTable([head = '', , ...rows]: string[]): string {
  const cells = (row: string) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim());
  const heads = cells(head).map((title) => `<th scope="col">${renderLine(title)}</th>`);
  const body = rows.map((row) => {
    const columns = cells(row).map((cell) => `<td>${renderLine(cell)}</td>`);
    return `<tr>${columns.join('')}</tr>`;
  });
  return `<table><thead><tr>${heads.join('')}</tr></thead><tbody>${body.join('')}</tbody></table>`;
}

export function renderLine(text: string): string {
  return text
    .split(/(`[^`]+`)/)
    .map((part) => {
      if (part.startsWith('`')) return `<code>${escapeHtml(part.slice(1, -1))}</code>`;
      return escapeHtml(part)
        .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
        .replace(/\[([^\]]+)\]\((#[\w-]+)\)/g, '<a href="$2">$1</a>');
    })
    .join('');
}
