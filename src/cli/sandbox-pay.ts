import {
  approvedCard,
  cancelAs,
  challengeAnswers,
  payAs,
  type Shopper,
  shopperAt,
} from '#hosting/sandbox/shopper.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckout, findCheckoutMerchant } from '#purchases/checkouts/checkout.sql.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Context, command, oneOf, type Surroundings } from './command.ts';
import { withSealing } from './connect.ts';
import { readInteger } from './duration.ts';
import { readSandboxFile } from './sandbox-gateway.ts';
import { fields } from './terminal.ts';

export const sandboxPay = command({
  name: 'sandbox pay',
  usage: ['CHECKOUT_ID [--term N] [--card NUMBER] [--challenge approve|decline|abandon]'],
  help: `Pays a checkout of the running sandbox, by default with the test card ${approvedCard}
and over the shortest of its terms, and answers the bank's challenge if there is one.

It prints the checkout's status, where the browser would go (null: it stays on the page) and why the
card was declined (null: it was not).

  tranche sandbox pay 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11 \\
    --term 3 --card 4000002500003155`,
  positionals: ['CHECKOUT_ID'],
  options: {
    term: { type: 'string' },
    card: { type: 'string', default: approvedCard },
    challenge: { type: 'string', default: 'approve' },
  },
  async run(context) {
    const challenge = oneOf(context.values.challenge, challengeAnswers, 'challenge');
    const { term } = context.values;
    const wanted = term === undefined ? null : readInteger(term, 'term');
    const [id = ''] = context.positionals;
    const { card } = context.values;
    report(context, await payCheckout(context, id, { term: wanted, card, challenge }));
  },
});

export const sandboxCancel = command({
  name: 'sandbox cancel',
  usage: ['CHECKOUT_ID'],
  help: `Cancels a checkout of the running sandbox, as the button on its page does, and prints the
checkout's status and where the browser would go.

  tranche sandbox cancel 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  positionals: ['CHECKOUT_ID'],
  async run(context) {
    const [id = ''] = context.positionals;
    report(context, await cancelCheckout(context, id));
  },
});

export async function payCheckout(
  context: Surroundings,
  id: string,
  how: Parameters<typeof payAs>[1],
): Promise<PayPage> {
  return await payAs(await openShopper(context, id), how);
}

export async function cancelCheckout(context: Surroundings, id: string): Promise<PayPage> {
  return await cancelAs(await openShopper(context, id));
}

async function openShopper(context: Surroundings, id: string): Promise<Shopper> {
  return await withSealing(context, async ({ config, database, sealing }) => {
    if (config.environment === 'production') {
      throw new OperatorError('This command pays in a sandbox only, never in production.');
    }
    const sandbox = await readSandboxFile(config);
    const merchant_id = isUuid(id) ? await findCheckoutMerchant(database.db, id) : null;
    const checkout = merchant_id && (await findCheckout(database.db, merchant_id, id));
    if (!checkout) throw new OperatorError(`There is no checkout ${id}.`);
    const url = `${sandbox.base_url}/pay/${paymentToken(sealing, checkout)}`;
    const cards = sandbox.gateways.find(({ name }) => name === checkout.gateway);
    const gateway = {
      gateway_url: cards?.url ?? null,
      gateway_secret_key: cards?.secret_key ?? '',
    };
    return shopperAt({ clock: context.clock, gateway }, url);
  });
}

function report(context: Context, page: PayPage): void {
  // After too many declines the page ends as well, and the answer below has the last decline.
  if (page.status === 'expired' && page.decline === null) {
    throw new OperatorError('The payment page has expired: create a new checkout.');
  }
  const isEnded = ['successful', 'cancelled', 'invalid_payload'].includes(page.status);
  const answer = {
    status: (isEnded ? page.status : 'received') as CheckoutStatus,
    redirect_url:
      page.status === 'successful' || page.status === 'cancelled' ? page.return_url : null,
    decline: page.decline?.reason ?? null,
  };
  context.print(answer, () =>
    fields(context.terminal, [
      ['Status', answer.status],
      ['Browser goes to', answer.redirect_url ?? 'nowhere; it stays on the page'],
      ['Declined', answer.decline ?? 'no'],
    ]),
  );
}
