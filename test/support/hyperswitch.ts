import { OutcomeUnknown, type PaymentState } from '#gateway/gateway.ts';
import { createHyperswitchGateway } from '#gateway/hyperswitch/hyperswitch.ts';
import { customerId, paymentId, refundId, verificationId } from '#gateway/hyperswitch/ids.ts';
import { testCards } from '../../test-gateway/cards.ts';
import {
  type ContractSubject,
  type GatewayWithShopper,
  publishableKey,
  secretKey,
  useGateway,
} from './gateway.ts';

type Begun = { outcome: string; session?: { client_secret: string } };

/**
 * Makes Hyperswitch's adapter for the second API of the test gateway, and a shopper's browser that
 * enters the card. Here a card's token is the card itself: it goes from the browser to the gateway,
 * and the adapter never sees it.
 */
export function useHyperswitch(
  url: string,
  changes: { timeoutMs?: number; verificationAmount?: number } = {},
): ContractSubject {
  const adapter = createHyperswitchGateway({
    protocol: 'hyperswitch',
    environment: 'sandbox',
    apiUrl: url,
    secretKey,
    publicKey: publishableKey,
    scriptUrl: `${url}/v1/HyperLoader.js`,
    testGateway: true,
    timeoutMs: 120_000,
    ...changes,
  });

  /** Types the card into the form, if the payment is waiting for one. */
  async function enter(card: string, { session }: Begun): Promise<void> {
    if (!session) return;
    const { status, text } = await confirmInSession(url, session.client_secret, card);
    if (status !== 200) throw new Error(text);
  }

  type Begin = Parameters<typeof adapter.begin>[0];
  async function pay(card: string, payment: Begin) {
    const begun = await adapter.begin(payment);
    if (begun.outcome === 'refused') return begun;
    await enter(card, begun);
    const state = await adapter.payment(payment.merchant, begun.payment_ref ?? '');
    if (state.outcome === 'processing') throw new OutcomeUnknown('the gateway is not done');
    return state;
  }

  const gateway: GatewayWithShopper = {
    ...adapter,
    authorise: ({ card_token, ...payment }) =>
      pay(card_token, { ...payment, instalments: [1], capture: 'later', card: null }),
    pay: ({ card, ...payment }) =>
      ('card_ref' in card
        ? adapter.begin({ ...payment, capture: 'now', card, store_card: false })
        : pay(card.card_token, {
            ...payment,
            ...({ capture: 'now', card: null, store_card: card.store } as const),
          })) as Promise<PaymentState>,
    async verifyCard({ card_token, ...card }) {
      const given = { ...card, currency: 'ZAR', card_token: null };
      const begun = await adapter.beginVerification(given);
      await enter(card_token, begun);
      return await adapter.cardVerification(card.merchant, begun.verification_ref ?? '');
    },
  };

  const { call, fault, hasStruck, struck, books } = useGateway(url);
  return {
    ...{ url, gateway, call, fault, hasStruck, struck, books },
    protocol: 'hyperswitch',
    quick: () => useHyperswitch(url, { timeoutMs: 250 }).gateway,
    begins: true,
    requestOf(operation, { key = '', attempt_id = '', checkout_id = '', reference = '' }) {
      switch (operation) {
        case 'capture':
          return { path: '/payments/:id/capture', key_contains: reference };
        case 'void':
          return { path: '/payments/:id/cancel', key_contains: reference };
        case 'refund':
          return { path: '/refunds', key_contains: refundId(key) };
        case 'createCustomer':
          return { path: '/customers', key_contains: customerId(checkout_id) };
        case 'detachCard':
          return { path: '/payment_methods/:id', key_contains: reference };
        case 'verifyCard':
          return { path: '/payments', key_contains: verificationId(attempt_id) };
        default:
          return { path: '/payments', key_contains: paymentId(attempt_id) };
      }
    },
    async tokenFor(card, expires) {
      const known = testCards.find(({ payment_method }) => payment_method === card);
      const number = known?.number ?? card;
      return expires === undefined ? number : `${number}-${expires}`;
    },
  };
}

/**
 * Confirms a session's payment with a card (`number` or `number-year-month`), as a shopper's
 * browser would. `more` are members that only a forger would send.
 */
export async function confirmInSession(
  url: string,
  client_secret: string,
  card: string,
  more: object = {},
): Promise<{ status: number; text: string }> {
  const [number = '', year = '2031', month = '12'] = card.split('-');
  const id = client_secret.split('_secret_')[0];
  const response = await fetch(`${url}/payments/${id}/confirm`, {
    method: 'POST',
    headers: { 'api-key': publishableKey },
    body: JSON.stringify({
      client_secret,
      payment_method: 'card',
      payment_method_data: {
        card: {
          card_number: number,
          card_exp_month: month,
          card_exp_year: year,
          card_holder_name: '',
          card_cvc: number.startsWith('37') ? '1234' : '123',
        },
      },
      customer_acceptance: { acceptance_type: 'offline' },
      ...more,
    }),
  });
  return { status: response.status, text: await response.text() };
}
