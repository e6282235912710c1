import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { median } from './create.ts';
import { has, run, writeScript } from './load.ts';
import { shoppers } from './sale.ts';
import type { Account } from './service.ts';
import {
  createSale,
  enterCard,
  openShop,
  paySale,
  readState,
  type Sale,
  type Shop,
  untilSettled,
} from './shop.ts';

export type PaymentsResult = {
  /** The service's payments per second divided by those of pgbench, both from the same round. */
  ratio: number;
  bare: number;
  paid: number;
  /** The ratio if the shoppers, the gateway, the shop and the mail server had their own machine. */
  ratioAlone: number;
};

/**
 * Compares payments with their callbacks and mails to pgbench, which sends the same writes and
 * locks in the same transactions, prepared. They are the service's own statements, as the server
 * logged them for one payment. pgbench sends no mail, calls no gateway and no shop, and reads
 * nothing but its values. The shoppers, the gateway, the shop and the mail server use the same
 * cores, and pgbench has none of them; `ratioAlone` leaves out their processor time. Returns null
 * without pgbench.
 */
export async function benchPayments(
  options: { payments: number; rounds: number },
  progress: (text: string) => void,
): Promise<PaymentsResult | null> {
  if (!has('pgbench')) return null;
  const shop = await openShop(shoppers);
  try {
    progress('payments: warming up');
    await pay(shop, await prepare(shop, 100));
    const payment = await recordPayment(shop);
    await shop.own.query('vacuum analyze');
    const bare: number[] = [];
    const paid: number[] = [];
    const alone: number[] = [];
    // Round 0 warms up.
    for (let round = 0; round <= options.rounds; round += 1) {
      progress(`payments: round ${round} of ${options.rounds}, service`);
      const sales = await prepare(shop, options.payments);
      const before = readCosts(shop);
      const perSecond = await pay(shop, sales);
      const after = readCosts(shop);
      progress(`payments: round ${round} of ${options.rounds}, pgbench`);
      const barePerSecond = await replay(shop, payment, options.payments);
      if (round === 0) continue;
      paid.push(perSecond);
      bare.push(barePerSecond);
      const [own, all] = [after.own - before.own, after.all - before.all];
      alone.push(((all / own) * perSecond) / barePerSecond);
    }
    return {
      ratio: median(paid.map((perSecond, round) => perSecond / (bare[round] ?? 0))),
      bare: median(bare),
      paid: median(paid),
      ratioAlone: median(alone),
    };
  } finally {
    await shop.close();
  }
}

async function atOnce<One>(all: One[], work: (one: One) => Promise<void>): Promise<void> {
  const left = [...all];
  const workOn = async () => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await work(one);
  };
  await Promise.all(Array.from({ length: shoppers }, workOn));
}

/** Prepares sales up to the moment when the shopper pays. */
async function prepare(shop: Shop, count: number): Promise<Sale[]> {
  const sales: Sale[] = [];
  for (let made = 0; made < count; made += 1) sales.push(await createSale(shop));
  await atOnce(sales, async (sale) => {
    await enterCard(shop, sale);
    await readState(shop, sale);
  });
  return sales;
}

/** The processor time of the service and its database, and that of all programs. */
function readCosts(shop: Shop): { own: number; all: number } {
  const { service, database } = shop.readCost();
  const own = service + database;
  return { own, all: own + shop.readOtherCost() };
}

/** Payments per second, until all callbacks are delivered and all mails are sent. */
async function pay(shop: Shop, sales: Sale[]): Promise<number> {
  const start = performance.now();
  await atOnce(sales, (sale) => paySale(shop, sale));
  await untilSettled(shop);
  return (1_000 * sales.length) / (performance.now() - start);
}

/** A statement of the service, with its parameters as texts. */
type Logged = { text: string; values: (string | null)[] };

/**
 * The writes and locks of a transaction, and its BEGIN with the settings that are sent with it. A
 * single write outside a transaction has no BEGIN.
 */
type Writes = { begin: string | null; statements: Logged[] };

type Payment = { checkout_id: string; writes: Writes[] };

/** Makes one payment while the server logs every statement. Returns the payment's writes. */
async function recordPayment(shop: Shop): Promise<Payment> {
  const settings = {
    log_statement: 'all',
    log_parameter_max_length: '-1',
    log_error_verbosity: 'default',
    log_line_prefix: '@@%p ',
  };
  const change = async (statement: (name: string, value: string) => string) => {
    for (const [name, value] of Object.entries(settings)) {
      await shop.own.query(statement(name, value));
    }
    await shop.own.query('select pg_reload_conf()');
    // The server's processes soon read the new settings.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  };
  const [sale] = await prepare(shop, 1);
  if (!sale) throw new Error('there is no sale');
  await change((name, value) => `alter system set ${name} = '${value}'`);
  const before = readFileSync(shop.logFile, 'utf8').length;
  await pay(shop, [sale]);
  await change((name) => `alter system reset ${name}`);
  const log = readFileSync(shop.logFile, 'utf8').slice(before);
  return { checkout_id: sale.id, writes: writesIn(log) };
}

/** The writes and locks of a payment, from the log. */
function writesIn(log: string): Writes[] {
  const all: Writes[] = [];
  const open = new Map<string, Writes>();
  const last = new Map<string, Logged>();
  for (const entry of log.split(/^@@/m).slice(1)) {
    const [, pid = '', kind, content = ''] = /^(\d+) (\w+): +(.*)$/s.exec(entry) ?? [];
    const known = last.get(pid);
    if (kind === 'DETAIL' && known) known.values = valuesIn(content);
    const text = /^(?:statement|execute [^:]*): (.*)$/s.exec(content)?.[1]?.trim();
    if (kind !== 'LOG' || text === undefined) continue;
    const logged: Logged = { text, values: [] };
    last.set(pid, logged);
    const within = open.get(pid);
    if (/^begin\b/.test(text)) open.set(pid, { begin: text, statements: [] });
    else if (text === 'commit') {
      if (within && within.statements.length > 0) all.push(within);
      open.delete(pid);
    } else if (isOfPayment(text)) {
      if (within) within.statements.push(logged);
      else all.push({ begin: null, statements: [logged] });
    }
  }
  // A payment writes the attempt, the request to the gateway, the outcome, and the callback's
  // attempt twice.
  if (all.length !== 5) throw new Error(`a payment wrote ${all.length} times`);
  return all;
}

const isOfPayment = (text: string) =>
  /^(insert into|update|with)\b|\bfor (no key )?update\b/.test(text) &&
  /\b(payment_attempts|checkouts|callback_attempts)\b/.test(text);

/** Parses `Parameters: $1 = 'it''s', $2 = NULL`. */
function valuesIn(detail: string): (string | null)[] {
  return [...detail.matchAll(/\$\d+ = (?:NULL|'((?:[^']|'')*)')/g)].map(([, value]) =>
    value === undefined ? null : later(value.replaceAll("''", "'")),
  );
}

/**
 * Moves times to the next day, so that the service neither claims nor sends what pgbench writes.
 */
function later(value: string): string {
  return value.replaceAll(/\d{4}-\d\d-\d\d(?=[T ]\d\d:)/g, (date) =>
    Temporal.PlainDate.from(date).add({ days: 1 }).toString(),
  );
}

const uuids = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Payments per second of pgbench, each of another checkout and with ids of its own. */
async function replay(shop: Shop, payment: Payment, count: number): Promise<number> {
  const { own, accounts } = shop;
  const [account] = accounts as [Account];
  const checkouts: string[] = [];
  for (let made = 0; made < count; made += 1) checkouts.push((await createSale(shop)).id);
  const fixed = [account.merchant.id, account.id];
  const idsIn = (value: string) => (value.match(uuids) ?? []).filter((id) => !fixed.includes(id));
  const all = payment.writes.flatMap(({ statements }) => statements.flatMap((one) => one.values));
  const varied = [...new Set(all)].filter((value) => value !== null && idsIn(value).length > 0);
  const rows = checkouts.map((id) => {
    const ids = new Map([[payment.checkout_id, id]]);
    const replaced = (old: string) => {
      if (fixed.includes(old)) return old;
      const known = ids.get(old) ?? randomUUID();
      ids.set(old, known);
      return known;
    };
    return varied.map((value) => value?.replaceAll(uuids, replaced));
  });
  await own.query('drop table if exists payment_values; drop sequence if exists payment_numbers');
  await own.query('create sequence payment_numbers');
  await own.query('create table payment_values (number bigint primary key, all_values text[])');
  await own.query(
    `insert into payment_values select row_number() over (), array(select jsonb_array_elements_text(r))
     from jsonb_array_elements($1::jsonb) r`,
    [JSON.stringify(rows)],
  );
  const stdout = await run('pgbench', [
    ...['-n', '-M', 'prepared', '-c', String(shoppers), '-j', '2'],
    ...['-t', String(count / shoppers), ...scriptOf(payment, varied), shop.databaseUrl],
  ]);
  const { rows: delivered } = await own.query<{ count: number }>(
    `select count(*) from callbacks where status = 'delivered' and checkout_id = any ($1::uuid[])`,
    [checkouts],
  );
  if (delivered[0]?.count !== count) throw new Error('pgbench did not pay all');
  return Number(/tps = ([\d.]+)/.exec(stdout)?.[1]);
}

/** Sends BEGIN and the settings of its transaction in one round trip, as the service does. */
const sendBegin = (begin: string): string[] =>
  begin === 'begin' ? ['begin;'] : ['\\startpipeline', `${begin};`, '\\endpipeline'];

/** The arguments with which pgbench sends a payment. The values that vary come from a table. */
function scriptOf({ writes }: Payment, varied: (string | null)[]): string[] {
  const defined: string[] = [];
  const send = ({ text, values }: Logged) => {
    const filled = text.replaceAll(/\$(\d+)/g, (_, at) => {
      const value = values[Number(at) - 1] ?? null;
      if (value === null) return 'null';
      if (varied.includes(value)) return `:v${varied.indexOf(value)}`;
      // pgbench would take the `:true` of a JSON text for the name of a variable.
      if (!/:[a-z_]/i.test(value)) return `'${value.replaceAll("'", "''")}'`;
      if (!defined.includes(value)) defined.push(value);
      return `:d${defined.indexOf(value)}`;
    });
    return `${filled.replaceAll(/\s*\n\s*/g, ' ')};`;
  };
  const columns = varied.map((_, at) => `all_values[${at + 1}] as v${at}`);
  const lines = [
    `select ${columns.join(', ')} from payment_values`,
    `where number = (select nextval('payment_numbers')) \\gset`,
    ...writes.flatMap(({ begin, statements }) =>
      begin === null
        ? statements.map(send)
        : [...sendBegin(begin), ...statements.map(send), 'commit;'],
    ),
  ];
  const script = writeScript('payment.sql', `${lines.join('\n')}\n`);
  return ['-f', script, ...defined.flatMap((value, at) => ['-D', `d${at}=${value}`])];
}
