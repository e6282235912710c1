import type { Clock } from '#platform/shared/clock.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { PayPlanRequest } from '#purchases/shoppers/plan-attempt.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { approvedCard, confirm, type Shopper, tokenOf } from '../shopper.ts';

/**
 * Verifies the shopper's e-mail address as a real shopper would: asks for a link and follows it
 * from the mail.
 */
export async function proveAddress(
  shopper: Shopper,
  { mailboxUrl, email, payment_url }: { mailboxUrl: string; email: string; payment_url: string },
): Promise<void> {
  await shopper.post('link', { email });
  const token = await findLink(shopper.deps.clock, mailboxUrl, payment_url);
  await shopper.post('session', { token });
}

const looksMax = 100;
const pauseMilliseconds = 100;

/** The worker sends the mail a moment later. */
async function findLink(clock: Clock, mailboxUrl: string, payment_url: string): Promise<string> {
  for (let looks = 0; looks < looksMax; looks += 1) {
    const response = await fetch(`${mailboxUrl}/messages`);
    const { data } = (await response.json()) as { data: { text: string }[] };
    for (const { text } of data) {
      const [, token] = text.split(`${payment_url}/manage#`);
      const found = /^[\w-]+/.exec(token ?? '');
      if (found) return found[0];
    }
    await clock.sleep(pauseMilliseconds);
  }
  throw new OperatorError('The mail with the link to the plan did not arrive.');
}

/** Pays what is late with another card, which is stored for the remaining payments. */
export async function payLate(shopper: Shopper): Promise<PayPage> {
  const page = await shopper.state();
  const { plan, consent_version } = page;
  const payments = plan?.payments ?? [];
  const late = payments.filter(({ status }) => status === 'late');
  const rest = payments.filter(({ status }) => status === 'next' || status === 'planned');
  const card_token = await tokenOf(shopper, page, approvedCard);
  const keeps = rest.length > 0;
  const began = await shopper.post('plan/pay', {
    what: 'late',
    payments: late.map(({ number }) => number),
    amount: late.reduce((sum, { amount }) => sum + amount, 0),
    card_token: card_token as string | null,
    ...(card_token === null && { enters_card: true }),
    keep_card: keeps,
    consent: keeps
      ? {
          version: consent_version,
          payments: rest.map(({ number, amount, due_on }) => ({ number, amount, due_on })),
        }
      : null,
  } satisfies PayPlanRequest);
  return await confirm(shopper, began, approvedCard);
}
