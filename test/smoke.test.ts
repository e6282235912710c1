import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createAccount, createSuccessfulCheckout, checkoutBody, send, startService, type Service, type Account } from './service.ts';

let service: Service; let account: Account;
before(async () => { service = await startService(); account = await createAccount(service); });
after(() => service.close());

test('smoke', async () => {
  const c = await send(service, account, 'POST', '/api/checkouts', { body: checkoutBody() });
  console.log(c.status, JSON.stringify(c.body), c.headers);
  const id = c.body.data.id;
  console.log(JSON.stringify((await send(service, account, 'GET', `/api/checkouts/${id}`)).body));
  console.log(JSON.stringify((await send(service, account, 'GET', `/api/checkouts?page[items]=3`)).body));
  console.log(JSON.stringify((await send(service, account, 'GET', `/api/config`)).body));
  const s = await createSuccessfulCheckout(service, account);
  const k = {'idempotency-key': 'abc'};
  console.log(JSON.stringify((await send(service, account, 'POST', `/api/refunds`, {body: {checkout_id: s, amount: 100}, headers: k})).body));
  const r = await send(service, account, 'POST', `/api/refunds`, {body: {checkout_id: s, amount: 100}, headers: k});
  console.log(JSON.stringify(r.body), r.headers);
  console.log(JSON.stringify((await send(service, account, 'POST', `/api/refunds`, {body: {checkout_id: s, amount: 150000}})).body));
  console.log(JSON.stringify((await send(service, account, 'POST', `/api/checkouts`, {body: checkoutBody({amount: 5, currency: 'USD', customer: {email:'x'}, notify_url: 'https://10.0.0.1/'}) })).body));
  console.log(JSON.stringify((await send(service, account, 'POST', `/api/checkouts`, {body: checkoutBody(), headers: {'x-signature': 'zzz'} })).body));
  console.log(JSON.stringify((await send(service, account, 'POST', `/api/checkouts`, {body: checkoutBody(), signed: false })).body));
  console.log(JSON.stringify((await send(service, account, 'GET', `/api/nope`)).body));
});
