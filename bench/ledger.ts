import type pg from 'pg';
import { checkLedger } from '#checks/books/audit-books.ts';
import type { Deps } from '#main.ts';
import { movements } from '#record/ledger/posting.ts';
import { tamper } from '../test/support/tamper.ts';
import { createAccount, startDatabase } from './service.ts';

export type LedgerResult = {
  /** How long it takes to check the large ledger, and one of a twentieth of its size. */
  seconds: { few: number; many: number };
  /** How long it takes to read the rows of the large ledger once and add up their amounts. */
  bareSeconds: number;
  /** The highest resident memory of this process during either check, in MB. */
  memory: { few: number; many: number };
  /** Whether the check found the one wrong cent in the large ledger, and nothing else. */
  isFound: boolean;
};

/**
 * Measures the check of a large ledger, and before and after it the check of one of a twentieth of
 * its size.
 */
export async function benchLedger(
  options: { checkouts: number },
  progress: (text: string) => void,
): Promise<LedgerResult> {
  const { checkouts: total } = options;
  const small = await startDatabase();
  const large = await startDatabase();
  const check = async ({ deps }: typeof small) => {
    let memory = 0;
    const start = performance.now();
    const { differences } = await checkLedger(deps, (done, all) => {
      memory = Math.max(memory, process.memoryUsage.rss() / 1024 / 1024);
      progress(`ledger: ${done} of ${all} checkouts checked`);
    });
    return { differences, memory, seconds: (performance.now() - start) / 1000 };
  };
  const measure = async (ledger: typeof small) => {
    const { differences, ...result } = await check(ledger);
    if (differences.length > 0) throw new Error(JSON.stringify(differences[0]));
    return result;
  };
  try {
    await fill(small.deps, Math.round(total / 20), progress);
    await fill(large.deps, total, progress);
    // Warms caches and compiles code, so that the first measurement is not slower.
    await measure(small);
    const few = [await measure(small), await measure(small)];
    const many = await measure(large);
    const bareSeconds = await readRows(large.deps, total);
    few.push(await measure(small), await measure(small));

    // A difference is planted, because a check that finds nothing may have checked nothing.
    const { rows } = await tamper(
      large.deps.database.pool,
      `update postings set amount = amount + 1
       where kind = 'sold' and checkout_id = (select id from checkouts
         where status = 'successful' order by id desc limit 1) returning checkout_id`,
    );
    const { differences } = await check(large);
    // Several invariants may name the same checkout.
    const ids = differences.map(({ row }) => row as { id?: string; checkout_id?: string });
    const found = [...new Set(ids.map(({ id, checkout_id }) => id ?? checkout_id))];
    const seconds = few.reduce((sum, one) => sum + one.seconds, 0) / few.length;
    const memory = Math.max(...few.map((one) => one.memory));
    return {
      seconds: { few: seconds, many: many.seconds },
      bareSeconds,
      memory: { few: memory, many: many.memory },
      isFound: found.length === 1 && found[0] === rows[0]?.checkout_id,
    };
  } finally {
    await large.stop();
    await small.stop();
  }
}

/** The lower bound: the rows that the check compares are read once, in the same ranges. */
async function readRows({ database: { pool } }: Deps, total: number): Promise<number> {
  const tables = [
    'payment_attempts',
    'instalments',
    'collections',
    'refund_requests',
    'refund_parts',
    'postings',
  ];
  const sums = [
    'select sum(amount) from checkouts where id between $1 and $2',
    'select sum(gross) from settlement_entries where checkout_id between $1 and $2',
    ...tables.map(
      (table) => `select sum(amount) from ${table} where checkout_id between $1 and $2`,
    ),
  ];
  const ids = (n: number) => `00000000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
  const start = performance.now();
  let next = 1;
  const read = async () => {
    while (next <= total) {
      const first = next;
      next += 5_000;
      for (const text of sums) await pool.query(text, [ids(first), ids(next - 1)]);
    }
  };
  await Promise.all([read(), read()]);
  return (performance.now() - start) / 1000;
}

/**
 * Inserts checkouts from eleven months with everything that the service would have written by the
 * first of December. One in ten was abandoned and one in twenty cancelled. Some of the others are
 * overdue, and some have refunds: in part, in whole, requested or declined.
 */
async function fill(deps: Deps, total: number, progress: (text: string) => void): Promise<void> {
  const { merchant, id: integration_id } = await createAccount(deps);
  const client = await deps.database.pool.connect();
  const filling = { owner: `'${merchant.id}'::uuid`, integration_id, total };
  const steps = {
    ...saleSteps(filling),
    ...planSteps(filling),
    ...refundSteps(filling),
    ...bookSteps(filling),
  };
  try {
    for (const [what, statements] of Object.entries(steps)) {
      progress(`ledger: inserting ${total} checkouts, ${what}`);
      for (const text of statements.split(';\n')) {
        await client.query({ text, query_timeout: 3_600_000 } as pg.QueryConfig);
      }
    }
    await client.query('vacuum analyze');
  } finally {
    // Closing the connection discards its settings.
    client.release(true);
  }
}

const accountsOfKinds = Object.entries(movements)
  .map(([kind, { debit, credit }]) => `('${kind}', '${debit}', '${credit}')`)
  .join(', ');

/** The merchant whose checkouts are inserted, as SQL, and how many there are. */
type Filling = { owner: string; integration_id: string; total: number };

const uuid = (group: number) =>
  `('00000000-0000-7000-${group}-' || lpad(to_hex(n), 12, '0'))::uuid`;

const saleSteps = ({ owner, integration_id, total }: Filling) => ({
  // Foreign keys are not checked, because the references are right by construction, and the rows
  // need not survive a power cut.
  settings: `
    set session_replication_role = replica;
    set synchronous_commit = off;
    set statement_timeout = 0;
    set work_mem = '256MB'`,
  checkouts: `
    create temporary table sold as
    select n, ${uuid(8000)} as id, amount, term, created_at, status,
      created_at + interval '5 minutes' as completed_at, amount / term as each,
      amount - amount / term * (term - 1) as first,
      case when status = 'successful' and refunded_at < '2026-12-01' then
        case n % 20 when 7 then 'part' when 13 then 'whole' when 17 then 'requested'
          when 19 then 'declined' end end as refund, refunded_at
    from (
      select n, 150000 + n % 1000 as amount, (array[1, 3, 3, 6])[n / 20 % 4 + 1] as term,
        case when n % 20 < 2 then 'received' when n % 20 = 2 then 'cancelled'
          else 'successful' end as status,
        timestamptz '2026-01-01' + n * interval '330 days' / ${total} as created_at,
        timestamptz '2026-02-10' + n * interval '330 days' / ${total} as refunded_at
      from generate_series(1::bigint, ${total}::bigint) n
    ) s;
    insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
      client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
      number_of_payments, signed, created_at, expires_at, completed_at)
    select ${owner}, id, n, '${integration_id}', status, amount, 'ZAR', 'order-' || n,
      'https://shop.example/tranche/callback', 'https://shop.example/paid',
      'https://shop.example/cart', '{"email": "thandi@example.com"}', '[]', '{1,3,6}',
      case when status <> 'received' then term end, true, created_at,
      created_at + interval '30 minutes', case when status <> 'received' then completed_at end
    from sold;
    insert into list_totals values (${owner}, 'checkouts', ${total}, '2026-12-01')`,
  'payment attempts': `
    insert into payment_attempts (merchant_id, id, checkout_id, purpose, number, instalments,
      number_of_payments, amount, currency, uses_stored_card, created_at, written_id, status,
      payment_ref, settled_at)
    select ${owner}, ${uuid(8001)}, id, 'first_payment', 1, '{1}', term, first, 'ZAR', false,
      completed_at, id, 'authorised', 'pi_' || n || '_1', completed_at
    from sold where status = 'successful'`,
});

const planSteps = ({ owner }: Filling) => ({
  payments: `
    create temporary table plan as
    select p.*, case
        when is_taken then 'cancelled'
        when is_overdue then 'overdue'
        when collect_at <= '2026-12-01' then 'collected'
        when number = 1 then 'authorised'
        else 'scheduled' end as status
    from (
      select s.n, s.id, s.refund, s.refunded_at, k as number,
        case k when 1 then first else each end as amount, due_on, collect_at,
        collect_at > refunded_at and (refund = 'whole' or refund = 'part' and k = term)
          and refund is not null as is_taken,
        s.n % 20 = 11 and k = 2 and collect_at < '2026-11-20' as is_overdue
      from sold s
      cross join lateral generate_series(1, term) k
      cross join lateral (select ((completed_at at time zone 'Africa/Johannesburg')::date
        + (k - 1) * interval '1 month')::date as due_on) d
      cross join lateral (select (case k when 1 then due_on + 1 + time '02:00'
        else due_on + time '08:00' end) at time zone 'Africa/Johannesburg' as collect_at) c
      where s.status = 'successful'
    ) p;
    insert into instalments (merchant_id, checkout_id, number, amount, currency, due_on, status,
      reduced, payment_ref, collected_at, declines, due_at)
    select ${owner}, id, number, amount, 'ZAR', due_on, status,
      case when status = 'cancelled' then amount else 0 end,
      case when status in ('authorised', 'collected') then 'pi_' || n || '_' || number end,
      case when status = 'collected' then collect_at end,
      case when status = 'overdue' then 4 else 0 end,
      case when status in ('authorised', 'scheduled') then collect_at end
    from plan`,
  collections: `
    insert into collections (merchant_id, id, checkout_id, instalment, number, kind, status,
      amount, currency, payment_ref, decline_reason, may_retry, created_at, asked_at, settled_at)
    select ${owner}, gen_random_uuid(), id, number, try,
      case number when 1 then 'capture' else 'charge' end,
      case when status = 'collected' then 'collected' else 'declined' end, amount, 'ZAR',
      'pi_' || n || '_' || number,
      case when status = 'overdue' then 'insufficient_funds' end,
      case when status = 'overdue' then true end, at, at, at
    from plan
    cross join lateral generate_series(1, case when status = 'overdue' then 4 else 1 end) try
    cross join lateral (select collect_at + (array[0, 1, 3, 7])[try] * interval '1 day' as at) a
    where status in ('collected', 'overdue')
    order by at`,
});

const refundSteps = ({ owner, integration_id }: Filling) => ({
  refunds: `
    create temporary table refund as
    select n, ${uuid(8002)} as id, id as checkout_id, refund, refunded_at as at,
      case when refund = 'whole' then amount when refund <> 'part' then 1000
        when term = 1 then 10000 else each end as amount
    from sold where refund is not null;
    insert into refund_requests (merchant_id, id, number, checkout_id, integration_id, status,
      amount, currency, signed, created_at, approved_at, completed_at, reason)
    select ${owner}, id, row_number() over (order by n),
      checkout_id, '${integration_id}',
      case refund when 'requested' then 'requested' when 'declined' then 'failed'
        else 'complete' end,
      amount, 'ZAR', true, at, case when refund in ('part', 'whole') then at end,
      case when refund in ('part', 'whole') then at end,
      case when refund = 'declined' then 'declined' end
    from refund;
    create temporary table part as
    select r.n, r.id as refund_id, r.checkout_id, p.number as instalment, r.at,
      case when p.is_taken then 'cancel' else 'card' end as kind,
      case when r.refund = 'whole' then p.amount else r.amount end as amount,
      row_number() over (partition by r.n order by p.is_taken desc, p.number desc) as number
    from refund r join plan p on p.n = r.n
    where r.refund = 'whole'
      or r.refund = 'part' and (p.is_taken or p.number = 1
        and not exists (select 1 from plan l where l.n = r.n and l.is_taken));
    insert into refund_parts (merchant_id, id, checkout_id, refund_id, round, number, instalment,
      kind, status, amount, from_status, payment_ref, keyed_at, refund_ref, settled_at)
    select ${owner}, gen_random_uuid(), checkout_id, refund_id, 1, number, instalment, kind,
      'done', amount, case kind when 'card' then 'collected' else 'scheduled' end,
      case kind when 'card' then 'pi_' || n || '_' || instalment end, at,
      case kind when 'card' then 're_' || n || '_' || instalment end, at
    from part`,
});

const bookSteps = ({ owner }: Filling) => ({
  postings: `
    insert into postings (merchant_id, id, checkout_id, kind, debit, credit, amount, currency,
      instalment, refund_id, at)
    select ${owner}, gen_random_uuid(), checkout_id, kind, debit, credit, amount, 'ZAR',
      instalment, refund_id, at
    from (
      select id as checkout_id, 'sold' as kind, amount, null::integer as instalment,
        null::uuid as refund_id, completed_at as at
      from sold where status = 'successful'
      union all
      select id, 'authorised', first, 1, null, completed_at from sold where status = 'successful'
      union all
      select id, case number when 1 then 'captured' else 'collected' end, amount, number, null,
        collect_at
      from plan where status = 'collected'
      union all
      select id, 'used', amount, 1, null, collect_at
      from plan where status = 'collected' and number = 1
      union all
      select checkout_id, 'reserved', amount, null, id, at from refund
      union all
      select checkout_id, 'released', amount, null, id, at from refund where refund <> 'requested'
      union all
      select checkout_id, case kind when 'card' then 'refunded' else 'cancelled' end, amount,
        instalment, refund_id, at
      from part
    ) p
    join (values ${accountsOfKinds}) m (kind, debit, credit) using (kind)
    order by at`,
  // The check also compares the entries with the postings. Half of the orders are owed as a whole,
  // the others payment by payment.
  settlement: `
    insert into settlement_terms values (${owner}, '2026-01-01', 'whole', 0, 0, 0, 'kept', 0, 0,
      '2026-01-01');
    insert into settlement_entries (merchant_id, id, kind, checkout_id, instalment, refund_id,
      gross, fee, vat, net, currency, at)
    select ${owner}, gen_random_uuid(), kind, checkout_id, instalment, refund_id, gross, 0, 0,
      gross, 'ZAR', at
    from (
      select 'sale' as kind, p.id as checkout_id, null::integer as instalment,
        null::uuid as refund_id, s.amount as gross, p.collect_at as at
      from plan p join sold s on s.n = p.n
      where p.number = 1 and p.status = 'collected' and p.n / 20 % 2 = 0
      union all
      select 'refund', checkout_id, null, id, -amount, at from refund
      where refund in ('part', 'whole') and n / 20 % 2 = 0
      union all
      select 'sale', id, number, null, amount, collect_at from plan
      where status = 'collected' and n / 20 % 2 = 1
      union all
      select 'refund', checkout_id, instalment, refund_id, -amount, at from part
      where kind = 'card' and n / 20 % 2 = 1
    ) e
    order by at`,
  vacuum: 'drop table sold, plan, refund, part',
});
