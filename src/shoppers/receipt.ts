import { escapeHtml } from '../shared/html.ts';
import { showMoney } from '../shared/money.ts';
import { oneLine } from '../shared/plain-text.ts';
import type { Territory } from '../shared/territories.ts';
import type { Plan, PlanPayment } from './plan.ts';

/** One payment as a page that prints well. It shows no more than the plan page does. */
export function writeReceipt(
  payment: PlanPayment,
  plan: Plan,
  about: {
    checkout_id: string;
    merchant: { name: string; territory: Territory };
    order: string;
    nonce: string;
  },
): string {
  const { territory } = about.merchant;
  const money = (cents: number) => escapeHtml(showMoney(cents, territory));
  const date = (instant: string) =>
    Temporal.Instant.from(instant)
      .toZonedDateTimeISO(territory.time_zone)
      .toPlainDate()
      .toLocaleString(territory.locale, { day: 'numeric', month: 'long', year: 'numeric' });
  const paidOn = payment.paid_at ? date(payment.paid_at) : date(`${payment.due_on}T12:00:00Z`);
  const merchant = escapeHtml(oneLine(about.merchant.name));
  const card = plan.card?.last4
    ? `${plan.card.brand ?? ''} ending ${plan.card.last4}`.trim()
    : null;
  const rows: [string, string][] = [
    ['Paid to', merchant],
    ['Order', escapeHtml(oneLine(about.order))],
    ['Payment', `${payment.number} of ${plan.payments.length}`],
    ['Date', escapeHtml(paidOn)],
    ...(card ? ([['Card', escapeHtml(card)]] as [string, string][]) : []),
    ...(payment.refunded > 0
      ? ([['Refunded since', money(payment.refunded)]] as [string, string][])
      : []),
    ['Reference', `${about.checkout_id}:${payment.number}`],
  ];
  return `<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Receipt: ${money(payment.amount)} to ${merchant}</title>
<style nonce="${about.nonce}">
:root { color-scheme: light dark; --ground: #f6f7f5; --surface: #fff; --ink: #10201e; --quiet: #55635f; --line: #dde3e0 }
@media (prefers-color-scheme: dark) { :root { --ground: #0c1413; --surface: #131d1c; --ink: #e8efed; --quiet: #9db0ab; --line: #25322f } }
body { margin: 0; padding: 24px 16px; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif }
main { max-width: 460px; margin: 0 auto; padding: 24px; border-radius: 12px; background: var(--surface) }
h1 { margin: 0; font-size: 16px; font-weight: 600; color: var(--quiet) }
.amount { margin: 4px 0 24px; font-size: 40px; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0 24px; margin: 0; font-size: 14px; font-variant-numeric: tabular-nums }
dt, dd { margin: 0; padding: 10px 0; border-top: 1px solid var(--line) }
dt { color: var(--quiet) }
dd { text-align: right; overflow-wrap: anywhere }
@media print { body { padding: 0; background: none; color: #000 } main { max-width: none; padding: 0 } }
</style>
</head>
<body>
<main>
<h1>Receipt</h1>
<p class="amount">${money(payment.amount)}</p>
<dl>
${rows.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join('\n')}
</dl>
</main>
</body>
</html>
`;
}
