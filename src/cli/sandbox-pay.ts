import type { Clock } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckoutMerchant } from '#purchases/checkouts/checkout.sql.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import type { CancelRequest, PayPage, PayRequest } from '#purchases/shoppers/pay-page.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Context, command, oneOf } from './command.ts';
import { withSealing } from './connect.ts';
import { readInteger } from './duration.ts';
import { readSandboxFile, type SandboxFile } from './sandbox-gateway.ts';
import { fields } from './terminal.ts';

// A shopper without a browser, for a merchant's automated tests. These commands call the same
// endpoints as the payment page; only the card goes to the test gateway directly.

export const approvedCard = '4242424242424242';
const challenges = ['approve', 'decline', 'abandon'] as const;

export const sandboxPay = command({
  name: 'sandbox pay',
  summary: 'pay a checkout without a browser',
  usage: ['CHECKOUT_ID [--term N] [--card NUMBER] [--challenge approve|decline|abandon]'],
  help: `Pays a checkout of the running sandbox, by default with the test card ${approvedCard}
and in the shortest of its terms, and answers the bank's challenge if there is one.

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
    const challenge = oneOf(context.values.challenge, challenges, 'challenge');
    const { term } = context.values;
    const wanted = term === undefined ? null : readInteger(term, 'term');
    const [id = ''] = context.positionals;
    const { card } = context.values;
    report(context, await payCheckout(context, id, { term: wanted, card, challenge }));
  },
});

export const sandboxCancel = command({
  name: 'sandbox cancel',
  summary: 'cancel a checkout without a browser',
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

type ShopperContext = Pick<Context, 'env' | 'clock' | 'random'>;

export async function payCheckout(
  context: ShopperContext,
  id: string,
  how: { term: number | null; card: string; challenge: (typeof challenges)[number] },
): Promise<PayPage> {
  const shopper = await openShopper(context, id);
  let page = await shopper.state();
  if (page.status === 'open') {
    page = await payOnce(shopper, page, how.term ?? page.number_of_payments, how.card);
  }
  page = await settled(context.clock, shopper, page);
  if (page.status === 'challenge' && how.challenge !== 'abandon') {
    await answerChallenge(page, how.challenge);
    page = await settled(context.clock, shopper, await shopper.state());
  }
  return page;
}

export async function cancelCheckout(context: ShopperContext, id: string): Promise<PayPage> {
  const shopper = await openShopper(context, id);
  const { number_of_payments } = await shopper.state();
  return await shopper.post('cancel', { number_of_payments });
}

type Shopper = {
  sandbox: SandboxFile;
  state(): Promise<PayPage>;
  post(action: 'pay' | 'cancel', body: PayRequest | CancelRequest): Promise<PayPage>;
};

async function openShopper(context: ShopperContext, id: string): Promise<Shopper> {
  return await withSealing(context, async ({ config, database, sealing }) => {
    if (config.environment === 'production') {
      throw new OperatorError('This command pays in a sandbox only, never in production.');
    }
    const sandbox = await readSandboxFile(config);
    const merchant_id = isUuid(id) ? await findCheckoutMerchant(database.db, id) : null;
    if (merchant_id === null) throw new OperatorError(`There is no checkout ${id}.`);
    const url = `${sandbox.base_url}/pay/${paymentToken(sealing, { merchant_id, id })}`;
    return {
      sandbox,
      state: async () => await read(await fetch(`${url}/state`)),
      post: async (action, body) =>
        await read(
          await fetch(`${url}/${action}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          }),
        ),
    };
  });
}

async function read(response: Response): Promise<PayPage> {
  if (response.ok) return (await response.json()) as PayPage;
  const { errors } = (await response.json()) as { errors?: { detail: string }[] };
  throw new OperatorError(errors?.map(({ detail }) => detail).join(' ') ?? response.statusText);
}

async function payOnce(
  shopper: Shopper,
  page: PayPage,
  number_of_payments: number,
  card: string,
): Promise<PayPage> {
  const plan = page.plans.find((one) => one.number_of_payments === number_of_payments);
  if (!plan) {
    const terms = page.plans.map((one) => one.number_of_payments).join(', ');
    throw new OperatorError(`This checkout has no term of ${number_of_payments}. It has ${terms}.`);
  }
  const token = await enterCard(shopper.sandbox, card);
  // The card frame refuses a bad number by itself. The page shows that, and no request is made.
  if (typeof token !== 'string') return { ...page, decline: token };
  return await shopper.post('pay', {
    number_of_payments,
    card_token: token,
    consent:
      number_of_payments === 1 ? null : { version: page.consent_version, payments: plan.payments },
  });
}

/** Does what the card frame does: sends the number to the gateway only. */
async function enterCard(
  sandbox: SandboxFile,
  number: string,
): Promise<string | NonNullable<PayPage['decline']>> {
  if (sandbox.gateway_url === null) {
    throw new OperatorError('This sandbox uses Stripe test mode. Pay on the page instead.');
  }
  const response = await fetch(`${sandbox.gateway_url}/v1/test_helpers/confirmation_tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${sandbox.gateway_secret_key}` },
    body: new URLSearchParams({
      'payment_method_data[type]': 'card',
      'payment_method_data[card][number]': number.replaceAll(/\s/g, ''),
    }),
  });
  const body = (await response.json()) as {
    id?: string;
    error?: { code?: string; message: string };
  };
  if (response.ok && body.id) return body.id;
  if (body.error?.code === 'incorrect_number') {
    return { reason: 'incorrect_number', may_retry: true };
  }
  throw new OperatorError(`The test gateway refuses this card: ${body.error?.message}`);
}

async function answerChallenge(page: PayPage, decision: 'approve' | 'decline'): Promise<void> {
  const answer = await fetch(page.challenge_url ?? '', {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ decision }),
  });
  const back = answer.headers.get('location');
  if (back === null) throw new OperatorError('The bank did not send the shopper back.');
  await fetch(back, { redirect: 'manual' });
}

/** Waits while an attempt is in flight, as the page does. */
async function settled(clock: Clock, shopper: Shopper, page: PayPage): Promise<PayPage> {
  let current = page;
  for (let looks = 0; current.status === 'paying' && looks < 300; looks += 1) {
    await clock.sleep(200);
    current = await shopper.state();
  }
  return current;
}

function report(context: Context, page: PayPage): void {
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
