import { createMerchant } from '#merchants/create-merchant.ts';
import { rollUp } from '#operating/rollups/roll-up.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { type ConsoleBrowser, startConsoleBrowser } from './console-browser.ts';
import { cards, wholeTerms } from './money.ts';
import type { Shopper } from './payments.ts';
import { rules } from './service.ts';

// Texts that merchants, shoppers and receivers can write. If one of them became markup or a script,
// it would set a member of the window.
export const hostile = (name: string) =>
  `<img src=x onerror="window.broken='${name}'"><script>window.broken='${name}'</script>`;

export type ConsoleScene = {
  console: ConsoleBrowser;
  /** The shopper who pays in three payments. */
  shopper: Shopper;
  /** The shopper whose second payment is overdue and whose callback is exhausted. */
  unlucky: Shopper;
  /** The shopper who pays at once and will dispute that payment. */
  disputed: Shopper;
  /** Whether the receiver refuses the unlucky shopper's callback. */
  receiver: { isDown: boolean };
};

/** Starts a console with merchants, shoppers, payouts, alerts and differences to look at. */
export async function startConsoleScene(): Promise<ConsoleScene> {
  // With an exporter's address the service gives traces their ids, although nothing listens there.
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
  const console = await startConsoleBrowser({ env });
  const { paying } = console;
  const receiver = { isDown: true };
  paying.receiver.answer = ({ path }) =>
    path === '/refuses' && receiver.isDown
      ? { status: 500, headers: { 'x-said': hostile('header') }, body: hostile('body') }
      : {};
  await setTerms(paying.service.deps, 'test', paying.account.merchant.id, wholeTerms);
  const customer = {
    email: 'thandi@example.com',
    first_name: hostile('first'),
    last_name: hostile('last'),
    billing_address: hostile('address'),
  };
  const shopper = await paying.shopper({
    client_reference_id: 'ORDER-1',
    customer,
    line_items: [
      { name: hostile('item'), amount: 60_000, quantity: 3 },
      { name: 'Voucher', amount: -10_000, quantity: 1 },
    ],
  });
  await shopper.pay(3);
  const unlucky = await paying.shopper({
    client_reference_id: hostile('order'),
    notify_url: `${paying.receiver.url}/refuses`,
    customer,
  });
  await unlucky.pay(3, { card: cards.laterInsufficientFunds });
  const disputed = await paying.shopper({ client_reference_id: 'ORDER-3', customer });
  await disputed.pay(1);
  // The unlucky shopper's second payment becomes overdue, and the callback is exhausted.
  await paying.pass({ days: 45 });
  const { deps } = paying.service;
  await createMerchant(deps, 'test', { name: hostile('merchant'), territory: 'ZA', rules });
  await raiseAlert(deps, deps.database.db, {
    kind: 'signature_mismatches',
    detail: hostile('alert'),
  });
  const difference = { kind: 'gateway_other_amount' as const, detail: hostile('difference') };
  await raiseAlert(deps, deps.database.db, difference);
  while ((await rollUp(deps)) > 0);
  return { console, shopper, unlucky, disputed, receiver };
}
