import { escapeHtml } from '../../shared/html.ts';
import { oneLine, printable } from '../../shared/plain-text.ts';
import type { Letter } from './letter.ts';

/** The letter as plain text: whole sentences on one line each, the plan as aligned columns. */
export function renderText({ paragraphs, rows, link, footer }: Letter): string {
  const columns = ['name', 'date', 'amount', 'state'] as const;
  const width = (column: (typeof columns)[number]) =>
    Math.max(...rows.map((row) => [...row[column]].length));
  const cell = (text: string, size: number, right: boolean) => {
    const gap = ' '.repeat(Math.max(0, size - [...text].length));
    return right ? gap + text : text + gap;
  };
  const table = rows
    .map((row) =>
      columns
        .map((column) => cell(row[column], width(column), column === 'amount'))
        .join('   ')
        .trimEnd(),
    )
    .join('\n');
  const parts = [...paragraphs, table, link ? `${link.label}:\n${link.url}` : ''];
  const body = parts.filter((part) => part !== '').join('\n\n');
  return plain(`${body}\n\n--\n${footer.join('\n')}\n`);
}

/** No-break spaces that amounts contain confuse plain clients, and control characters everyone. */
function plain(text: string): string {
  return printable(text.replace(/[\u00a0\u202f]/g, ' '));
}

/** A header must be one line, whatever a merchant calls itself. */
export function renderSubject({ subject }: Letter): string {
  return oneLine(subject).slice(0, 200);
}

const html = (text: string) => escapeHtml(printable(text));

/** The letter as HTML: inline styles only, no image, nothing from elsewhere. */
export function renderHtml(letter: Letter, language: string): string {
  const { paragraphs, rows, link, footer } = letter;
  const paragraph = (text: string) =>
    `<p style="margin:0 0 16px;font-size:16px;line-height:1.5">${html(text)}</p>`;
  const cell = (text: string, style: string) =>
    `<td style="padding:8px 12px 8px 0;border-bottom:1px solid #dde3e0;${style}">${html(text)}</td>`;
  const table =
    rows.length === 0
      ? ''
      : `<table role="presentation" style="border-collapse:collapse;width:100%;margin:0 0 24px;font-size:14px;font-variant-numeric:tabular-nums">${rows
          .map(
            ({ name, date, amount, state }) =>
              `<tr>${cell(name, '')}${cell(date, '')}${cell(amount, 'text-align:right;white-space:nowrap')}${cell(state, 'color:#55635f')}</tr>`,
          )
          .join('')}</table>`;
  const button = link
    ? `<p style="margin:0 0 24px"><a href="${html(link.url)}" style="display:inline-block;padding:12px 20px;border-radius:8px;background:#0b6b5f;color:#ffffff;font-size:16px;text-decoration:none">${html(link.label)}</a></p>`
    : '';
  return `<!doctype html>
<html lang="${html(language)}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${html(letter.subject)}</title>
<style>@media (prefers-color-scheme: dark) { .ground { background: #0c1413 !important } .card { background: #131d1c !important; color: #e8efed !important } td { border-color: #25322f !important } }</style></head>
<body class="ground" style="margin:0;padding:24px 12px;background:#f6f7f5">
<div class="card" style="max-width:520px;margin:0 auto;padding:24px;border-radius:12px;background:#ffffff;color:#10201e;font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif">
${paragraphs.map(paragraph).join('\n')}
${table}
${button}
${footer.map((text) => `<p style="margin:0;font-size:13px;line-height:1.5;color:#55635f">${html(text)}</p>`).join('\n')}
</div>
</body>
</html>
`;
}
