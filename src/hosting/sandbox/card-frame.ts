import type { CardEntry, CardSession } from '#gateway/gateway.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { OperatorError } from '#record/actions/operate.ts';

// Does the work of the test gateway's card frame: sends the card number only to the gateway.

/**
 * The test gateway of a running sandbox. The URL is null if the sandbox uses a real gateway's test
 * mode.
 */
export type CardGateway = { gateway_url: string | null; gateway_secret_key: string };

type Decline = NonNullable<PayPage['decline']>;

const mistyped: Decline = { reason: 'incorrect_number', may_retry: true };

/**
 * Makes a token for a card, as the frame does. Returns the token, or why the frame refuses the
 * number.
 */
export async function enterCard(
  { gateway_url, gateway_secret_key }: CardGateway,
  number: string,
): Promise<string | Decline> {
  if (gateway_url === null) {
    throw new OperatorError('This sandbox uses the test mode of a real gateway. Pay on the page.');
  }
  const response = await fetch(`${gateway_url}/v1/test_helpers/confirmation_tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway_secret_key}` },
    body: new URLSearchParams({
      'payment_method_data[type]': 'card',
      'payment_method_data[card][number]': digitsOf(number),
    }),
  });
  const body = (await response.json()) as {
    id?: string;
    error?: { code?: string; message: string };
  };
  if (response.ok && body.id) return body.id;
  if (body.error?.code === 'incorrect_number') return mistyped;
  throw new OperatorError(`The test gateway refuses this card: ${body.error?.message}`);
}

/** Confirms a session's payment with a card. Returns why the frame refuses the number, or null. */
export async function confirmCard(
  { apiUrl, publicKey }: CardEntry,
  { client_secret }: CardSession,
  number: string,
): Promise<Decline | null> {
  const [id] = client_secret.split('_secret_');
  const response = await fetch(`${apiUrl}/payments/${id}/confirm`, {
    method: 'POST',
    headers: { 'api-key': publicKey, 'content-type': 'application/json' },
    body: JSON.stringify({
      client_secret,
      payment_method: 'card',
      payment_method_data: { card: cardOf(digitsOf(number)) },
      customer_acceptance: { acceptance_type: 'offline' },
    }),
  });
  if (response.ok) return null;
  const { error } = (await response.json()) as { error?: { message?: string } };
  if (error?.message?.startsWith('number: ')) return mistyped;
  throw new OperatorError(`The test gateway refuses this card: ${error?.message}`);
}

const digitsOf = (number: string) => number.replaceAll(/\s/g, '');

const cardOf = (card_number: string) => ({
  card_number,
  card_exp_month: '12',
  card_exp_year: '2031',
  card_holder_name: '',
  card_cvc: card_number.startsWith('37') ? '1234' : '123',
});
