import { brandName } from '#platform/shared/card-names.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import type { Language } from '#platform/shared/language.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import type { Territory } from '#platform/shared/territories.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { words } from '#platform/shared/words/words.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { Plan, PlanPayment } from './plan.ts';

const style = `:root { color-scheme: light dark; --ground: #f6f7f5; --surface: #fff; --ink: #10201e; --quiet: #55635f; --line: #dde3e0; --accent: #0b6b5f; --accent-ground: #e6f2ef }
@media (prefers-color-scheme: dark) { :root { --ground: #0c1413; --surface: #131d1c; --ink: #e8efed; --quiet: #9db0ab; --line: #25322f; --accent: #5fd3bf; --accent-ground: #12302b } }
* { box-sizing: border-box }
body { margin: 0; padding: 48px 16px; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; font-variant-numeric: tabular-nums }
main { max-width: 460px; margin: 0 auto; border: 1px solid var(--line); border-radius: 12px; background: var(--surface); overflow: hidden }
header { padding: 24px; background: var(--accent-ground) }
h1, p { margin: 0 }
h1 { font-size: 14px; font-weight: 600; color: var(--quiet) }
.merchant { font-weight: 600; overflow-wrap: anywhere }
.amount { font-size: clamp(22px, 10vw, 40px); line-height: 1.2; font-weight: 700; letter-spacing: -0.02em; overflow-wrap: anywhere }
.paid { display: flex; align-items: center; gap: 8px; margin-top: 8px; color: var(--accent); font-size: 14px; font-weight: 600 }
.paid svg { width: 18px; height: 18px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round }
dl { margin: 0; padding: 8px 24px; font-size: 14px }
dl div { display: flex; justify-content: space-between; gap: 24px; padding: 10px 0 }
dl div + div { border-top: 1px solid var(--line) }
dt { flex: none; color: var(--quiet) }
dd { margin: 0; text-align: end; overflow-wrap: anywhere }
footer { display: flex; align-items: center; gap: 8px; padding: 16px 24px 24px; color: var(--quiet); font-size: 13px; font-weight: 600 }
.logo { width: 18px; height: 18px; fill: none; stroke: var(--accent); stroke-width: 2.5 }
.logo .full { fill: var(--accent) }
@media (max-width: 500px) { body { padding: 16px } }
@media print {
  :root { --ground: #fff; --surface: #fff; --ink: #000; --quiet: #444; --line: #bbb; --accent: #000; --accent-ground: #fff }
  body { padding: 0 }
  main { max-width: none; border: 0 }
  header, dl, footer { padding-inline: 0 }
}
`;

/** One payment as a page that prints well. It shows no more than the plan page does. */
export function writeReceipt(
  payment: PlanPayment,
  plan: Plan,
  about: {
    checkout_id: string;
    merchant: { name: string; territory: Territory };
    order: string;
    /** The one that paid this payment. */
    card: Plan['card'];
    language: Language;
    nonce: string;
  },
): string {
  const { territory } = about.merchant;
  const { receipt, page } = words[about.language];
  const money = (cents: number) => showMoney(cents, territory);
  const paidOn = payment.paid_at
    ? Temporal.Instant.from(payment.paid_at)
        .toZonedDateTimeISO(territory.time_zone)
        .toPlainDate()
        .toString()
    : payment.due_on;
  const merchant = oneLine(about.merchant.name);
  const rows: [name: string, value: string][] = [
    [receipt.order, oneLine(about.order)],
    [receipt.payment, fillIn(receipt.of, { number: payment.number, count: plan.payments.length })],
    [receipt.date, writeDate(paidOn, about.language)],
  ];
  if (about.card?.last4) {
    const { brand, last4 } = about.card;
    rows.push([receipt.card, fillIn(page.plan_card, { brand: brandName(brand), last4 }).trim()]);
  }
  if (payment.refunded > 0) rows.push([receipt.refunded, money(payment.refunded)]);
  rows.push([receipt.reference, `${about.checkout_id}:${payment.number}`]);
  const amount = escapeHtml(money(payment.amount));
  return `<!doctype html>
<html lang="${about.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(fillIn(receipt.title, { amount: money(payment.amount), merchant }))}</title>
<style nonce="${about.nonce}">
${style}</style>
</head>
<body>
<main>
<header>
<h1>${escapeHtml(receipt.heading)}</h1>
<p class="merchant"><bdi>${escapeHtml(merchant)}</bdi></p>
<p class="amount">${amount}</p>
<p class="paid"><svg viewBox="0 0 18 18" aria-hidden="true"><circle cx="9" cy="9" r="8"/><path d="m5.5 9.3 2.5 2.5 4.5-5.3"/></svg>${escapeHtml(page.plan_paid)}</p>
</header>
<dl>
${rows.map(([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`).join('\n')}
</dl>
<footer><svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect class="full" x="4.25" y="5.25" width="5.5" height="21.5" rx="1.5"/><rect x="13.25" y="5.25" width="5.5" height="21.5" rx="1.5"/><rect x="22.25" y="5.25" width="5.5" height="21.5" rx="1.5"/></svg>Tranche</footer>
</main>
</body>
</html>
`;
}
