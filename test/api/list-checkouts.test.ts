import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { assertRefused, frozenClock, inParallel } from '../support/expectations.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  createAccount,
  createCheckout,
  movableClock,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = frozenClock();
let service: Service;
before(async () => {
  service = await startService({ clock });
});
after(() => service.close());

const list = (caller: Account, query = '') =>
  send(service, caller, 'GET', `/api/checkouts${query && `?${query}`}`);
const address = (number: number, items: number) =>
  `http://localhost:3000/api/checkouts?page%5Bnumber%5D=${number}&page%5Bitems%5D=${items}`;
const ids = (answer: { body: { data: { id: string }[] } }) => answer.body.data.map(({ id }) => id);

async function createMany(caller: Account, count: number): Promise<string[]> {
  const created: string[] = [];
  for (let index = 0; index < count; index++) {
    created.push(await createCheckout(service, caller, { client_reference_id: `order-${index}` }));
  }
  return created;
}

test('an empty list is one empty page', async () => {
  const answer = await list(await createAccount(service));
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, {
    data: [],
    links: { first: address(1, 10), last: address(1, 10), prev: null, next: null },
  });
  assert.deepEqual(Object.keys(answer.body.links), ['first', 'last', 'prev', 'next']);
});

test('an item is exactly what reading that checkout answers', async () => {
  const caller = await createAccount(service);
  const [id] = await createMany(caller, 1);
  const one = await send(service, caller, 'GET', `/api/checkouts/${id}`);
  assert.deepEqual((await list(caller)).body, {
    data: [one.body.data],
    links: { first: address(1, 10), last: address(1, 10), prev: null, next: null },
  });
});

describe('pages', () => {
  let caller: Account;
  /** Newest first. The clock stands still, so all were created in the same millisecond. */
  let newest: string[];
  before(async () => {
    caller = await createAccount(service);
    newest = (await createMany(caller, 23)).reverse();
  });

  test('ten on a page by default, the newest first', async () => {
    const answer = await list(caller);
    assert.deepEqual(ids(answer), newest.slice(0, 10));
    assert.deepEqual(answer.body.links, {
      first: address(1, 10),
      last: address(3, 10),
      prev: null,
      next: address(2, 10),
    });
  });

  for (const [query, from, to, number, items, last] of [
    ['page[number]=2', 10, 20, 2, 10, 3],
    ['page[number]=3', 20, 23, 3, 10, 3],
    ['page%5Bnumber%5D=2&page%5Bitems%5D=5', 5, 10, 2, 5, 5],
    ['page[items]=1&page[number]=23', 22, 23, 23, 1, 23],
    ['page[items]=23', 0, 23, 1, 23, 1],
    ['page[items]=22&page[number]=2', 22, 23, 2, 22, 2],
    ['page[items]=100', 0, 23, 1, 100, 1],
    ['page[items]=101', 0, 23, 1, 100, 1],
    ['page[items]=99999999999999999999', 0, 23, 1, 100, 1],
    ['page[number]=02', 10, 20, 2, 10, 3],
    ['page[number]=2&sort=amount&x[y]=z', 10, 20, 2, 10, 3],
  ] as const) {
    test(`${query}: rows ${from} to ${to}, links of ${items} items`, async () => {
      const answer = await list(caller, query);
      assert.equal(answer.status, 200);
      assert.deepEqual(ids(answer), newest.slice(from, to));
      assert.deepEqual(answer.body.links, {
        first: address(1, items),
        last: address(last, items),
        prev: number > 1 ? address(number - 1, items) : null,
        next: number < last ? address(number + 1, items) : null,
      });
    });
  }

  for (const number of [
    '4',
    '5',
    '1000',
    '999999999999999',
    '99999999999999999999',
    '9'.repeat(400),
  ]) {
    test(`page ${number.slice(0, 30)} is past the end: empty, and prev is the last page`, async () => {
      const answer = await list(caller, `page[number]=${number}`);
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, {
        data: [],
        links: { first: address(1, 10), last: address(3, 10), prev: address(3, 10), next: null },
      });
    });
  }

  for (const name of ['page[number]', 'page[items]']) {
    for (const value of [
      '0',
      '00',
      '-1',
      'abc',
      '',
      '1.5',
      '1e2',
      '0x10',
      '%20',
      '1%20',
      '%2B1',
      '١',
      '1,2',
      '%00',
      'null',
    ]) {
      test(`${name}=${value} is a 400`, async () => {
        assertRefused(
          await list(caller, `${name}=${value}`),
          400,
          `The query parameter ${name} must be an integer of at least 1.`,
        );
      });
    }
    test(`${name} twice is a 400`, async () => {
      assertRefused(
        await list(caller, `${name}=1&${name}=1`),
        400,
        `The query parameter ${name} is given more than once: give it once.`,
      );
    });
  }

  test('the same page twice has the same rows in the same order', async () => {
    for (const query of ['', 'page[number]=2&page[items]=7']) {
      assert.deepEqual((await list(caller, query)).body, (await list(caller, query)).body);
    }
  });

  for (const items of [1, 4, 10, 23, 100]) {
    test(`following next from the first page visits every row once, by ${items}`, async () => {
      const seen: string[] = [];
      let next: string | null = address(1, items);
      while (next !== null) {
        const { pathname, search } = new URL(next);
        const answer = await send(service, caller, 'GET', pathname + search);
        seen.push(...ids(answer));
        next = answer.body.links.next;
      }
      assert.deepEqual(seen, newest);
    });
  }

  test("a merchant's list holds nothing of another merchant's, and counts none of it", async () => {
    const other = await createAccount(service);
    const [own] = await createMany(other, 1);
    const answer = await list(other);
    assert.deepEqual(ids(answer), [own]);
    assert.equal(answer.body.links.next, null);
    const { id } = other.merchant;
    for (const named of [id, id.toUpperCase(), '']) {
      assert.deepEqual(ids(await list(other, `filter[merchant_id]=${named}`)), [own]);
    }
    for (const named of [caller.merchant.id, randomUUID(), 'x', '%00']) {
      assertRefused(
        await list(other, `filter[merchant_id]=${named}`),
        422,
        'Validation failed: filter[merchant_id] must be the merchant of this integration, or be left out.',
      );
    }
  });

  test('an unknown filter is refused, and the refusal names the known ones', async () => {
    const known =
      'a list takes page[number], page[items], filter[merchant_id], filter[client_reference_id].';
    for (const name of [
      'filter[status]',
      'filter[Merchant_id]',
      'Filter[merchant_id]',
      'client_reference_id',
      'filter',
      'page[size]',
      'page',
    ]) {
      assertRefused(
        await list(caller, `${name}=x`),
        400,
        `There is no query parameter ${name}: ${known}`,
      );
    }
  });

  test('a repeated filter is refused as such', async () => {
    for (const name of ['filter[merchant_id]', 'filter[client_reference_id]']) {
      assertRefused(
        await list(caller, `${name}=x&${name}=x`),
        400,
        `The query parameter ${name} is given more than once: give it once.`,
      );
    }
  });
});

describe('filter[client_reference_id]', () => {
  const reference = 'Order é & 1/2 😀';
  const query = `filter[client_reference_id]=${encodeURIComponent(reference)}`;
  const create = async (who: Account, client_reference_id: string) => {
    const { body } = await send(service, who, 'POST', '/api/checkouts', {
      body: checkoutBody({ client_reference_id }),
    });
    return body.data.id as string;
  };

  test('finds the checkouts of one reference, newest first, on pages that keep the filter', async () => {
    const caller = await createAccount(service);
    const other = await createAccount(service);
    const expected: string[] = [];
    for (let index = 0; index < 7; index++) {
      expected.unshift(await create(caller, reference));
      await create(caller, `${reference} `);
      await create(other, reference);
    }
    assert.deepEqual(ids(await list(caller, query)), expected);
    const seen: string[] = [];
    let next: string | null = `/api/checkouts?${query}&page[items]=3`;
    while (next !== null) {
      const answer: Answer = await send(service, caller, 'GET', next);
      seen.push(...ids(answer));
      const { pathname, search } = new URL(answer.body.links.next ?? 'http://x/');
      assert.equal(new URL(answer.body.links.last).searchParams.get('page[number]'), '3');
      next = answer.body.links.next && pathname + search;
    }
    assert.deepEqual(seen, expected);
  });

  test('finds nothing for another spelling, and past the end', async () => {
    const caller = await createAccount(service);
    await create(caller, reference);
    for (const other of ['order', reference.toLowerCase(), `${reference}x`, '%', '*']) {
      const answer = await list(caller, `filter[client_reference_id]=${encodeURIComponent(other)}`);
      assert.deepEqual(ids(answer), []);
    }
    const past = await list(caller, `${query}&page[number]=2`);
    assert.deepEqual(ids(past), []);
    assert.match(past.body.links.prev, /page%5Bnumber%5D=1/);
  });

  for (const value of ['', '%00', 'a'.repeat(256)]) {
    test(`"${value.slice(0, 9)}" is a 400`, async () => {
      const caller = await createAccount(service);
      assertRefused(
        await list(caller, `filter[client_reference_id]=${value}`),
        400,
        'The query parameter filter[client_reference_id] must have 1 to 255 characters.',
      );
    });
  }

  test('costs the same however many checkouts share the reference', async () => {
    const caller = await createAccount(service);
    await create(caller, reference);
    const { pool } = service.deps.database;
    // A merchant that uses one reference for everything has thousands of such rows.
    await pool.query(
      `insert into checkouts
       select (jsonb_populate_record(c, jsonb_build_object(
         'id', gen_random_uuid(), 'number', c.number + n))).*
       from checkouts c, generate_series(1, 5000) n where c.merchant_id = $1`,
      [caller.merchant.id],
    );
    const answer = await list(caller, `${query}&page[items]=100`);
    assert.equal(answer.body.data.length, 100);
    assert.match(answer.body.links.last, /page%5Bnumber%5D=10&/, 'the 1,000 newest');
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
      `explain select number from checkouts where merchant_id = '${caller.merchant.id}'
       and client_reference_id = '${reference}' order by number desc limit 1000`,
    );
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    assert.match(plan, /checkouts_by_reference/);
  });
});

test('reading all pages while rows are created shows every row that existed at the start', async () => {
  // Pages count from the newest row, so a new row pushes others onto the next page. A client that
  // reads all pages may see a row twice and may not see the new ones, but it misses none.
  const caller = await createAccount(service);
  const existing = await createMany(caller, 30);
  const seen: string[] = [];
  let next: string | null = address(1, 7);
  while (next !== null) {
    const { pathname, search } = new URL(next);
    const answer = await send(service, caller, 'GET', pathname + search);
    seen.push(...ids(answer));
    next = answer.body.links.next;
    if (seen.length < 80) await createMany(caller, 3);
  }
  assert.deepEqual(
    existing.filter((id) => !seen.includes(id)),
    [],
  );
});

test('created_at never ascends down the list, even if the clocks of the creators disagree', async () => {
  const early = await startService({
    clock: movableClock('2026-11-15T07:59:58Z'),
    databaseUrl: service.databaseUrl,
  });
  const late = await startService({
    clock: movableClock('2026-11-15T08:00:02.5Z'),
    databaseUrl: service.databaseUrl,
  });
  try {
    const caller = await createAccount(service);
    const acknowledged: string[] = [];
    await inParallel(12, async (worker) => {
      for (let index = 0; index < 8; index++) {
        const one = [service, early, late][(worker + index) % 3] as Service;
        acknowledged.push(await createCheckout(one, caller));
      }
    });
    const { data } = (await list(caller, 'page[items]=100')).body as {
      data: { id: string; attributes: { created_at: string } }[];
    };
    assert.deepEqual(new Set(data.map(({ id }) => id)), new Set(acknowledged));
    const times = data.map(({ attributes }) => attributes.created_at);
    assert.deepEqual(times, times.toSorted().reverse());
  } finally {
    await Promise.all([early.close(), late.close()]);
  }
});

test('links begin with the configured base address', async () => {
  const other = await startService({ env: { BASE_URL: 'https://pay.example:8443' } });
  try {
    const caller = await createAccount(other);
    for (const resource of ['checkouts', 'refunds']) {
      const { body } = await send(other, caller, 'GET', `/api/${resource}?page[items]=3`);
      assert.equal(
        body.links.first,
        `https://pay.example:8443/api/${resource}?page%5Bnumber%5D=1&page%5Bitems%5D=3`,
      );
    }
  } finally {
    await other.close();
  }
});
