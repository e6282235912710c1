import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertRefused, frozenClock, inParallel } from '../support/expectations.ts';
import {
  type Account,
  createAccount,
  createSuccessfulCheckout,
  movableClock,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = frozenClock();
let service: Service;
let account: Account;
let newest: string[];
before(async () => {
  service = await startService({ clock });
  account = await createAccount(service);
  // The refunds belong to two checkouts in turn, and are all from the same millisecond.
  const checkouts = [
    await createSuccessfulCheckout(service, account),
    await createSuccessfulCheckout(service, account),
  ];
  newest = [];
  for (let index = 0; index < 13; index++) {
    newest.unshift(await createRefund(service, account, checkouts[index % 2] as string));
  }
});
after(() => service.close());

async function createRefund(on: Service, caller: Account, checkout_id: string): Promise<string> {
  const { body } = await send(on, caller, 'POST', '/api/refunds', {
    body: { checkout_id, amount: 10 },
  });
  return body.data.id;
}

const list = (query = '', caller = account) =>
  send(service, caller, 'GET', `/api/refunds${query && `?${query}`}`);
const address = (number: number, items: number) =>
  `http://localhost:3000/api/refunds?page%5Bnumber%5D=${number}&page%5Bitems%5D=${items}`;
const ids = (answer: { body: { data: { id: string }[] } }) => answer.body.data.map(({ id }) => id);

test('an empty list is one empty page', async () => {
  const other = await createAccount(service);
  await createSuccessfulCheckout(service, other);
  const answer = await list('', other);
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, {
    data: [],
    links: { first: address(1, 10), last: address(1, 10), prev: null, next: null },
  });
});

test('refund requests are listed newest first, each as reading it answers', async () => {
  const answer = await list();
  assert.deepEqual(ids(answer), newest.slice(0, 10));
  assert.deepEqual(answer.body.links, {
    first: address(1, 10),
    last: address(2, 10),
    prev: null,
    next: address(2, 10),
  });
  const one = await send(service, account, 'GET', `/api/refunds/${newest[0]}`);
  assert.deepEqual(answer.body.data[0], one.body.data);
});

test('a page past the end is empty and its prev is the last page', async () => {
  const answer = await list('page[number]=9&page[items]=6');
  assert.deepEqual(answer.body, {
    data: [],
    links: { first: address(1, 6), last: address(3, 6), prev: address(3, 6), next: null },
  });
});

test('following next visits every row once, and prev leads back', async () => {
  const seen: string[] = [];
  let next: string | null = address(1, 5);
  let previous: string | null = null;
  while (next !== null) {
    const { pathname, search } = new URL(next);
    const answer = await send(service, account, 'GET', pathname + search);
    assert.equal(answer.body.links.prev, previous);
    previous = next;
    seen.push(...ids(answer));
    next = answer.body.links.next;
  }
  assert.deepEqual(seen, newest);
});

test('page[items] above 100 is treated as 100; malformed values are a 400', async () => {
  assert.equal((await list('page[items]=101')).body.links.first, address(1, 100));
  assertRefused(
    await list('page[items]=1&page[items]=1'),
    400,
    'The query parameter page[items] is given more than once: give it once.',
  );
  for (const name of ['page[number]', 'page[items]']) {
    for (const query of [`${name}=0`, `${name}=-1`, `${name}=abc`, `${name}=`]) {
      assertRefused(
        await list(query),
        400,
        `The query parameter ${name} must be an integer of at least 1.`,
      );
    }
  }
});

test('filter[client_reference_id] finds the refunds of the checkouts with that reference', async () => {
  const caller = await createAccount(service);
  const wanted: string[] = [];
  for (const client_reference_id of ['a', 'b', 'a']) {
    const paid = await createSuccessfulCheckout(service, caller, { client_reference_id });
    for (let index = 0; index < 3; index++) {
      const id = await createRefund(service, caller, paid);
      if (client_reference_id === 'a') wanted.unshift(id);
    }
  }
  const answer = await list('filter[client_reference_id]=a&page[items]=4', caller);
  assert.deepEqual(ids(answer), wanted.slice(0, 4));
  const { pathname, search, searchParams } = new URL(answer.body.links.next);
  assert.equal(searchParams.get('filter[client_reference_id]'), 'a');
  assert.deepEqual(ids(await send(service, caller, 'GET', pathname + search)), wanted.slice(4));
  assert.deepEqual(ids(await list('filter[client_reference_id]=c', caller)), []);
  assert.deepEqual(ids(await list('filter[client_reference_id]=a')), []);
  assertRefused(
    await list('filter[status]=failed', caller),
    400,
    'There is no query parameter filter[status]: a list takes page[number], page[items], filter[merchant_id], filter[client_reference_id].',
  );
});

test("a merchant's list holds nothing of another merchant's", async () => {
  const other = await createAccount(service);
  const own = await createRefund(service, other, await createSuccessfulCheckout(service, other));
  assert.deepEqual(ids(await list('', other)), [own]);
});

test('created_at never ascends down the list, even if the clocks of the creators disagree', async () => {
  const late = await startService({
    clock: movableClock('2026-11-15T08:00:03Z'),
    databaseUrl: service.databaseUrl,
  });
  try {
    const caller = await createAccount(service);
    const checkouts = await inParallel(4, () => createSuccessfulCheckout(service, caller));
    const created = await inParallel(24, (index) =>
      createRefund(index % 2 ? late : service, caller, checkouts[index % 4] as string),
    );
    const { data } = (await list('page[items]=100', caller)).body as {
      data: { id: string; attributes: { created_at: string } }[];
    };
    assert.deepEqual(new Set(data.map(({ id }) => id)), new Set(created));
    const times = data.map(({ attributes }) => attributes.created_at);
    assert.deepEqual(times, times.toSorted().reverse());
  } finally {
    await late.close();
  }
});
