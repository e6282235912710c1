import { logoPath } from '#merchants/logo-path.ts';
import type { MerchantProfile } from '#merchants/merchant.ts';
import { brandName } from '#platform/shared/card-names.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import type { Language } from '#platform/shared/language.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import type { Territory } from '#platform/shared/territories.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { words } from '#platform/shared/words/words.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { Checkout, LineItem } from '#purchases/checkouts/checkout.ts';
import type { Plan, PlanPayment } from './plan.ts';

const style = `:root { color-scheme: light dark; --ground: #f6f7f5; --surface: #fff; --ink: #10201e; --quiet: #55635f; --line: #dde3e0; --accent: #0b6b5f; --accent-ground: #e6f2ef }
@media (prefers-color-scheme: dark) { :root { --ground: #0c1413; --surface: #131d1c; --ink: #e8efed; --quiet: #9db0ab; --line: #25322f; --accent: #5fd3bf; --accent-ground: #12302b } }
* { box-sizing: border-box }
body { margin: 0; padding: 48px 16px; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; font-variant-numeric: tabular-nums }
main { max-width: 460px; margin: 0 auto; border: 1px solid var(--line); border-radius: 12px; background: var(--surface); overflow: hidden }
header { padding: 24px; background: var(--accent-ground) }
h1, p { margin: 0 }
h1 { font-size: 14px; font-weight: 600; color: var(--quiet) }
.shop-logo { display: block; width: auto; max-width: 160px; height: 48px; margin: 0 0 12px; padding: 4px; border-radius: 8px; background: #fff; object-fit: contain }
.merchant { font-weight: 600; overflow-wrap: anywhere }
.amount { font-size: clamp(22px, 10vw, 40px); line-height: 1.2; font-weight: 700; letter-spacing: -0.02em; overflow-wrap: anywhere }
.paid { display: flex; align-items: center; gap: 8px; margin-top: 8px; color: var(--accent); font-size: 14px; font-weight: 600 }
.paid svg { width: 18px; height: 18px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round }
dl { margin: 0; padding: 8px 24px; font-size: 14px }
dl div { display: flex; justify-content: space-between; gap: 24px; padding: 10px 0 }
dl div + div { border-top: 1px solid var(--line) }
dt { flex: none; color: var(--quiet) }
dd { margin: 0; text-align: end; overflow-wrap: anywhere }
h2 { margin: 0; padding: 16px 24px 0; font-size: 14px; overflow-wrap: anywhere }
.items dt { flex: auto; overflow-wrap: anywhere }
.items dd { flex: none }
.items div:last-child { font-weight: 600 }
footer { display: flex; align-items: center; gap: 8px; padding: 16px 24px 24px; color: var(--quiet); font-size: 13px; font-weight: 600 }
.logo { width: 18px; height: 18px; fill: none; stroke: var(--accent); stroke-width: 2.5 }
.logo .full { fill: var(--accent) }
@media (max-width: 500px) { body { padding: 16px } }
@media print {
  :root { --ground: #fff; --surface: #fff; --ink: #000; --quiet: #444; --line: #bbb; --accent: #000; --accent-ground: #fff }
  body { padding: 0 }
  main { max-width: none; border: 0 }
  header, dl, h2, footer { padding-inline: 0 }
}
`;

/** One payment in the shopper's language. It shows no more than the plan page does. */
export type Receipt = {
  language: Language;
  title: string;
  heading: string;
  merchant: string;
  /** The URL of the merchant's logo. */
  logo: string | null;
  amount: string;
  paid: string;
  rows: [name: string, value: string][];
  order: string;
  /** The items of the order with their prices, and its amount at the end. */
  items: [name: string, value: string][];
};

export function describeReceipt(
  payment: PlanPayment,
  plan: Plan,
  about: {
    checkout: Pick<Checkout, 'id' | 'client_reference_id' | 'amount' | 'line_items'>;
    merchant: MerchantProfile & { name: string; territory: Territory };
    card: Plan['card'];
    language: Language;
  },
): Receipt {
  const { checkout, language } = about;
  const { territory } = about.merchant;
  const { receipt, page } = words[language];
  const money = (cents: number) => showMoney(cents, territory);
  const paidOn = payment.paid_at
    ? Temporal.Instant.from(payment.paid_at)
        .toZonedDateTimeISO(territory.time_zone)
        .toPlainDate()
        .toString()
    : payment.due_on;
  const merchant = oneLine(about.merchant.name);
  const order = oneLine(checkout.client_reference_id);
  const rows: [name: string, value: string][] = [
    [receipt.order, order],
    [receipt.payment, fillIn(receipt.of, { number: payment.number, count: plan.payments.length })],
    [receipt.date, writeDate(paidOn, language)],
  ];
  if (about.card?.last4) {
    const { brand, last4 } = about.card;
    rows.push([receipt.card, fillIn(page.plan_card, { brand: brandName(brand), last4 }).trim()]);
  }
  if (payment.refunded > 0) rows.push([receipt.refunded, money(payment.refunded)]);
  if (payment.dispute !== null) {
    const isOpen = payment.dispute === 'open';
    rows.push([receipt.dispute, isOpen ? page.plan_row_disputed : page.plan_row_returned]);
  }
  const { address, vat_number, contact, logo } = about.merchant;
  if (address !== null) rows.push([page.shop_address, oneLine(address.replaceAll('\n', ', '))]);
  if (vat_number !== null) rows.push([page.shop_vat, vat_number]);
  if (contact !== null) rows.push([page.shop_contact, contact]);
  rows.push([receipt.reference, `${checkout.id}:${payment.number}`]);
  return {
    ...{ language, merchant, rows },
    logo: logo && logoPath(logo),
    title: fillIn(receipt.title, { amount: money(payment.amount), merchant }),
    heading: receipt.heading,
    amount: money(payment.amount),
    paid: page.plan_paid,
    order: `${receipt.order} ${order}`,
    items: listItems(checkout, page, money),
  };
}

/**
 * Items need not add up to the order's amount: the difference counts as other charges, or as a
 * discount.
 */
function listItems(
  { amount, line_items }: Pick<Checkout, 'amount' | 'line_items'>,
  page: (typeof words)[Language]['page'],
  money: (cents: number) => string,
): [name: string, value: string][] {
  if (line_items.length === 0) return [];
  const priceOf = (item: LineItem) => item.amount * item.quantity;
  const rest = amount - line_items.reduce((sum, item) => sum + priceOf(item), 0);
  const items = line_items.map((item): [string, string] => [
    `${item.quantity} × ${oneLine(item.name)}`,
    money(priceOf(item)),
  ]);
  if (rest !== 0) items.push([rest > 0 ? page.other_charges : page.discounts, money(rest)]);
  return [...items, [page.total, money(amount)]];
}

/** A receipt as a page to print. */
export function writeReceipt(receipt: Receipt, nonce: string): string {
  const facts = (rows: [name: string, value: string][]) =>
    rows
      .map(
        ([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`,
      )
      .join('\n');
  const items =
    receipt.items.length === 0
      ? ''
      : `<h2>${escapeHtml(receipt.order)}</h2>\n<dl class="items">\n${facts(receipt.items)}\n</dl>\n`;
  return `<!doctype html>
<html lang="${receipt.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(receipt.title)}</title>
<style nonce="${nonce}">
${style}</style>
</head>
<body>
<main>
<header>
${receipt.logo === null ? '' : `<img class="shop-logo" src="${escapeHtml(receipt.logo)}" alt="">\n`}<h1>${escapeHtml(receipt.heading)}</h1>
<p class="merchant"><bdi>${escapeHtml(receipt.merchant)}</bdi></p>
<p class="amount">${escapeHtml(receipt.amount)}</p>
<p class="paid"><svg viewBox="0 0 18 18" aria-hidden="true"><circle cx="9" cy="9" r="8"/><path d="m5.5 9.3 2.5 2.5 4.5-5.3"/></svg>${escapeHtml(receipt.paid)}</p>
</header>
<dl>
${facts(receipt.rows)}
</dl>
${items}<footer><svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect class="full" x="4.25" y="5.25" width="5.5" height="21.5" rx="1.5"/><rect x="13.25" y="5.25" width="5.5" height="21.5" rx="1.5"/><rect x="22.25" y="5.25" width="5.5" height="21.5" rx="1.5"/></svg>Tranche</footer>
</main>
</body>
</html>
`;
}
