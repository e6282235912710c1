import assert from 'node:assert/strict';
import { enableLegacy, type IssuedLegacyCredential } from '#purchases/legacy/enable-legacy.ts';
import { type Account, type Answer, createAccount, type Service } from './service.ts';

// A v1 shop plugin, which logs in and sends a checkout as JSON or as a form.

export type Plugin = IssuedLegacyCredential & { merchant_id: string };

/** Creates a merchant with an integration that has v2 and v1 credentials. */
export async function createPlugin(
  service: Pick<Service, 'deps'>,
  options: Parameters<typeof createAccount>[1] = {},
): Promise<{ account: Account; plugin: Plugin }> {
  const account = await createAccount(service, options);
  return { account, plugin: await enablePlugin(service, account.id, account.merchant.id) };
}

export async function enablePlugin(
  { deps }: Pick<Service, 'deps'>,
  integration_id: string,
  merchant_id: string,
): Promise<Plugin> {
  return { ...(await enableLegacy(deps, 'test', integration_id)), merchant_id };
}

/** Sends a body as JSON, or as a form if it is one. */
export async function sendLegacy(
  { app }: Pick<Service, 'app'>,
  path: string,
  body: object | string | Buffer,
  options: { token?: string; headers?: Record<string, string>; address?: string } = {},
): Promise<Answer> {
  const isForm = body instanceof URLSearchParams;
  const isWritten = typeof body === 'string' || Buffer.isBuffer(body);
  const payload = isForm ? body.toString() : isWritten ? body : JSON.stringify(body);
  const response = await app.inject({
    method: 'POST',
    url: path,
    headers: {
      'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
      ...(options.token !== undefined && { authorization: `Bearer ${options.token}` }),
      ...options.headers,
    },
    payload,
    ...(options.address && { remoteAddress: options.address }),
  });
  return { status: response.statusCode, body: response.json(), headers: response.headers };
}

export const credentialsOf = ({ client_id, client_secret, merchant_id }: Plugin) => ({
  client_id,
  client_secret,
  merchant_id,
});

export async function logIn(service: Pick<Service, 'app'>, plugin: Plugin): Promise<string> {
  const { status, body } = await sendLegacy(service, '/login', credentialsOf(plugin));
  assert.equal(status, 200, JSON.stringify(body));
  return body.token;
}

type Changes = {
  merchant?: object;
  customer?: object;
  purchase?: object;
  [member: string]: unknown;
};

/** A v1 checkout request with every field of the spec's table. */
export const legacyBody = (changes: Changes = {}) => ({
  purchaseAmount: 150_000,
  currency: 'ZAR',
  ...changes,
  merchant: {
    notify_url: 'https://shop.example/v1/callback',
    return_url: 'https://shop.example/order/1001',
    merchantReference: 'shop-7',
    mode: 'live',
    ...changes.merchant,
  },
  customer: {
    name: 'Thandi',
    lastName: 'Dlamini',
    emailAddress: 'thandi@example.com',
    telephoneNumber: '+27821234567',
    billingAddress: '1 Long Street, Cape Town',
    ...changes.customer,
  },
  purchase: {
    order_id: 'order-1001',
    items:
      '[{"description":"Boots","price":140000,"qty":1},{"description":"Socks","price":"5000","qty":"2"}]',
    purchaseDate: '2026-11-15',
    ...changes.purchase,
  },
});

/** `{purchase: {order_id: 7}}` → `purchase[order_id]=7`, as PHP and jQuery write it. */
export function toForm(body: object): URLSearchParams {
  const form = new URLSearchParams();
  const put = (name: string, value: unknown): void => {
    if (typeof value !== 'object' || value === null) form.append(name, String(value));
    else for (const [key, one] of Object.entries(value)) put(`${name}[${key}]`, one);
  };
  for (const [name, value] of Object.entries(body)) put(name, value);
  return form;
}

export async function createLegacyCheckout(
  service: Pick<Service, 'app'>,
  token: string,
  changes: Changes = {},
): Promise<{ id: string; payment_url: string; transaction_verify: string }> {
  const answer = await sendLegacy(service, '/payment/checkout', legacyBody(changes), { token });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}
