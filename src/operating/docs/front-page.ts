import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import { type Site, writePage } from './page.ts';

/** The page at `/`: it introduces the service and links to the rest. */
export function writeFrontPage(
  site: Site,
  { baseUrl, page }: { baseUrl: string; page: Pick<HostedPageSettings, 'mailboxUrl' | 'sandbox'> },
  shelf: string,
): string {
  const card = (href: string, title: string, text: string) =>
    `<li><a href="${escapeHtml(href)}">${title}</a><p>${text}</p></li>`;
  const { sandbox, mailboxUrl } = page;
  const places = [
    ...(sandbox
      ? [
          card(sandbox.shop, 'Demo shop', 'Buy something and pay with a test card.'),
          card(
            sandbox.console,
            'Console',
            'Orders, refunds, disputes and payouts of the demo shop.',
          ),
        ]
      : []),
    ...(mailboxUrl ? [card(mailboxUrl, 'Mailbox', 'The e-mails that shoppers would get.')] : []),
  ];
  return writePage(site, {
    title: 'Instalment checkout',
    part: '/',
    contents: shelf,
    contentsTitle: 'Guides',
    main: `<article class="guide overview">
<h1>Instalment checkout</h1>
<div class="intro"><p>With Tranche a shopper pays an order in monthly payments by card. The merchant’s server creates a checkout, sends the shopper to its payment page, and receives a signed callback with the outcome.</p></div>
${places.length > 0 ? `<h2 id="sandbox">This sandbox</h2>\n<ul class="cards">\n${places.join('\n')}\n</ul>\n` : ''}<h2 id="developers">For developers</h2>
<ul class="cards">
${card('/docs/guides/quickstart', 'Quickstart', 'From the first signed request to a paid checkout.')}
${card('/docs/guides', 'Guides', 'Signing, callbacks, refunds, testing and going live.')}
${card('/docs', 'Reference', 'Every endpoint, with requests to copy.')}
${card('/docs/signature', 'Signature doctor', 'Why a signature does not match. Nothing leaves your browser.')}
</ul>
<p>This is the ${site.environment} environment. The base address of the API is <code>${escapeHtml(baseUrl)}</code>, and its OpenAPI description is at <a href="/docs/api/v2"><code>/docs/api/v2</code></a>.</p>
<h2 id="shoppers">For shoppers</h2>
<p>To pay an order, open the payment link from the shop again. If the link has expired, start the payment again in the shop.</p>
</article>`,
  });
}

/** The page for an unknown address below `/docs`. */
export function writeNothingHere(site: Site, shelf: string): string {
  return writePage(site, {
    title: 'Page not found',
    part: '/',
    contents: shelf,
    contentsTitle: 'Guides',
    main: `<article class="guide">
<h1>Page not found</h1>
<div class="intro"><p>There is no page at this address. It may have moved, or the link has a mistake.</p></div>
<p>Search the guides and the reference at the top, or begin at <a href="/docs/guides">the guides</a> or <a href="/docs">the reference</a>.</p>
</article>`,
  });
}
