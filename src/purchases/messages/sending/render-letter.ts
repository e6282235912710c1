import { escapeHtml } from '#platform/shared/html.ts';
import { oneLine, printable } from '#platform/shared/plain-text.ts';
import type { Letter, LetterRow } from './letter.ts';

/** The letter as plain text: each paragraph on one line, and the plan in aligned columns. */
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

/**
 * Plain-text clients may not display no-break spaces and hyphens, which amounts and isiZulu
 * contain.
 */
function plain(text: string): string {
  return printable(text.replace(/[\u00a0\u202f]/g, ' ').replaceAll('\u2011', '-'));
}

/** A header must be one line, whatever a merchant calls itself. */
export function renderSubject({ subject }: Letter): string {
  // The cut must not leave half of a character.
  return [...oneLine(subject)].slice(0, 200).join('');
}

const html = (text: string) => escapeHtml(printable(text));

/**
 * The letter as HTML. It loads at most the logo, whose URL is the same for all shoppers, so that it
 * does not reveal who reads the letter. Styles are inline, because many clients drop the head.
 * Those that keep it also get the colours for dark mode.
 */
export function renderHtml(letter: Letter, language: string): string {
  const { from, paragraphs, rows, link, footer } = letter;
  const paragraph = (text: string) =>
    `<p style="margin:0 0 16px;font-size:16px;line-height:24px">${html(text)}</p>`;
  const table =
    rows.length === 0
      ? ''
      : `<table role="presentation" cellpadding="0" cellspacing="0" style="border-collapse:collapse;width:100%;margin:8px 0 24px;font-variant-numeric:tabular-nums">
${rows.map(renderRow).join('\n')}
</table>`;
  const button = link
    ? `<p style="margin:0 0 24px"><a class="button" href="${html(link.url)}" style="display:inline-block;padding:13px 24px;border-radius:8px;background:#0b6b5f;color:#ffffff;font-size:16px;line-height:24px;font-weight:600;text-decoration:none">${html(link.label)}</a></p>`
    : '';
  return `<!doctype html>
<html lang="${html(language)}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark"><title>${html(letter.subject)}</title>
<style>@media (prefers-color-scheme: dark) { ${darkStyles} }</style></head>
<body class="ground" style="margin:0;padding:24px 12px;background:#f6f7f5">
<div class="card" style="max-width:460px;margin:0 auto;padding:28px 24px;border-radius:12px;background:#ffffff;color:#10201e;overflow-wrap:break-word;word-break:break-word;font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif">
<p class="quiet" style="margin:0 0 4px;font-size:14px;line-height:20px;font-weight:600;color:#55635f">${letter.logo ? renderLogo(letter.logo, from) : `${bars}${html(from)}`}</p>
<h1 style="margin:0 0 16px;font-size:20px;line-height:26px;font-weight:700">${html(letter.subject)}</h1>
${paragraphs.map(paragraph).join('\n')}
${table}
${button}
<p class="quiet line" style="margin:0;padding-top:16px;border-top:1px solid #dde3e0;font-size:13px;line-height:20px;color:#55635f">${footer.map(html).join('<br>')}</p>
</div>
</body>
</html>
`;
}

/** Two columns fit every phone and every language: the payment with its date, and the amount. */
function renderRow({ name, date, amount, status, state }: LetterRow): string {
  const isGone = status === 'cancelled';
  const isLate = status === 'late';
  const strike = isGone ? ';text-decoration:line-through' : '';
  const weight = status === 'paid' || isLate ? 600 : 400;
  const word = `<span class="${isLate ? 'warning' : 'quiet'}" style="color:${isLate ? '#8a5a00;font-weight:600' : '#55635f'}">${html(state)}</span>`;
  const line = 'padding:10px 0;border-top:1px solid #dde3e0;vertical-align:top;line-height:22px';
  return `<tr><td class="line" style="${line}"><span style="font-size:16px;font-weight:${weight}${strike}">${html(date)}</span><br><span class="quiet" style="font-size:14px;color:#55635f">${html(name)} &middot; ${word}</span></td><td class="line" style="${line};padding-left:16px;text-align:right;white-space:nowrap;font-size:16px;font-weight:${weight}${strike}">${html(amount)}</td></tr>`;
}

/**
 * The background is white, because a logo may be dark. Clients that load no images show the name.
 */
const renderLogo = (url: string, name: string) =>
  `<img src="${html(url)}" alt="${html(name)}" height="40" style="display:block;width:auto;max-width:160px;height:40px;margin:0 0 12px;padding:4px;border-radius:8px;background:#ffffff;color:#55635f;object-fit:contain">`;

/** The three bars of the pages' logo, without an image. */
const bar = (fill: string) =>
  `<span class="bar${fill ? ' full' : ''}" style="display:inline-block;width:3px;height:12px;margin-right:2px;border:1px solid #0b6b5f;border-radius:1px;vertical-align:-1px${fill}"></span>`;
const bars = `<span aria-hidden="true" style="margin-right:6px">${bar(';background:#0b6b5f')}${bar('')}${bar('')}</span>`;

const darkStyles = [
  '.ground { background: #0c1413 !important }',
  '.card { background: #131d1c !important; color: #e8efed !important }',
  '.quiet { color: #9db0ab !important }',
  '.warning { color: #f4bf5f !important }',
  '.line { border-color: #25322f !important }',
  '.button { background: #5fd3bf !important; color: #0c1413 !important }',
  '.bar { border-color: #5fd3bf !important }',
  '.full { background: #5fd3bf !important }',
].join(' ');
