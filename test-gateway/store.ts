import { chmodSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type Stripe from 'stripe';
import type { EventObject } from './objects/event.ts';

/** The facts about a payment that only the Hyperswitch API knows. */
export type HyperswitchPart = {
  /** When the payment's client secret expires, in seconds since the epoch. */
  expires_at: number;
  currency: string;
  authentication_type: 'three_ds' | 'no_three_ds';
  off_session: boolean;
  mit_category: string | null;
  /**
   * Whether the payment begins a mandate. Once the payment is captured, its customer cannot be
   * deleted.
   */
  isMandate: boolean;
};

/** Data that the gateway stores with an object and does not show to callers. */
type Hidden = {
  customer: { deleted?: boolean };
  confirmation_token: { card: string; exp_month: number; exp_year: number; used: boolean };
  /**
   * `stored_by`: the charge, made with the shopper present, that stored this card. Later charges
   * without the shopper refer to that charge.
   */
  payment_method: { card: string; authenticated: boolean; stored_by?: string };
  setup_intent: {
    challenge: string | null;
    return_url: string | null;
    hyperswitch?: HyperswitchPart;
    /** Missing until the setup is confirmed, and in a file that an earlier version wrote. */
    attempt?: Stripe.SetupAttempt;
  };
  payment_intent: {
    /** The secret in the URL of the issuer's page. Null if the bank has not asked the shopper. */
    challenge: string | null;
    return_url: string | null;
    /** Seconds since the epoch, as all times of objects are. */
    capture_before: number | null;
    hyperswitch?: HyperswitchPart;
  };
  charge: Record<never, never>;
  /** `isAsked`: whether Hyperswitch has learned the outcome of a pending refund. */
  refund: {
    becomes: 'succeeded' | 'failed' | null;
    at: number;
    isBooked?: boolean;
    isAsked?: boolean;
  };
  balance_transaction: Record<never, never>;
  dispute: Record<never, never>;
  /** Only the hash of the content is stored. */
  file: { sha256: string };
  event: Record<never, never>;
};

type Objects = {
  customer: Stripe.Customer;
  confirmation_token: Stripe.ConfirmationToken;
  payment_method: Stripe.PaymentMethod;
  payment_intent: Stripe.PaymentIntent;
  setup_intent: Stripe.SetupIntent;
  charge: Stripe.Charge;
  refund: Stripe.Refund;
  balance_transaction: Stripe.BalanceTransaction;
  dispute: Stripe.Dispute;
  file: Stripe.File;
  event: EventObject;
};

export type Kind = keyof Objects;

/** An object with the SDK's type, and the data that the gateway hides. */
export type Kept<K extends Kind> = {
  object: Objects[K];
  hidden: Hidden[K];
  /** The merchant by whose clock the object ages; empty if the caller named none. */
  merchant: string;
};

export type KeyRecord = {
  fingerprint: string;
  status: number;
  body: string;
  request: string;
  merchant: string;
  /** The merchant's time in milliseconds, when the answer was stored. */
  at: number;
};

const comparisons: Record<string, string> = { gt: '>', gte: '>=', lt: '<', lte: '<=' };

const schema = `
  pragma journal_mode = wal;
  pragma synchronous = full;
  create table if not exists objects (
    number integer primary key autoincrement,
    id text not null unique,
    kind text not null,
    merchant text not null,
    customer text,
    charge text,
    body text not null,
    hidden text not null
  );
  create index if not exists objects_by_kind on objects (kind, number);
  create index if not exists objects_of_customer on objects (customer, kind, number);
  create index if not exists objects_of_source on objects (kind, body ->> '$.source')
    where kind = 'balance_transaction';
  create index if not exists disputes_of_charge on objects (kind, body ->> '$.charge')
    where kind = 'dispute';
  create index if not exists objects_of_merchant on objects (merchant);
  create index if not exists objects_of_charge on objects (charge) where charge is not null;
  create table if not exists keys (
    key text primary key,
    fingerprint text not null,
    status integer not null,
    body text not null,
    request text not null,
    merchant text not null,
    at integer not null
  ) without rowid;
  create index if not exists keys_by_age on keys (merchant, at);
  create table if not exists merchants (id text primary key, now integer not null) without rowid;
`;

const prepareStatements = (database: DatabaseSync) => ({
  begin: database.prepare('begin immediate'),
  commit: database.prepare('commit'),
  rollback: database.prepare('rollback'),
  find: database.prepare('select body, hidden, merchant from objects where id = ? and kind = ?'),
  save: database.prepare(`
    insert into objects (id, kind, merchant, customer, charge, body, hidden)
    values (?, ?, ?, ?, ?, ?, ?)
    on conflict (id) do update
    set customer = excluded.customer, body = excluded.body, hidden = excluded.hidden`),
  ofCustomer: database.prepare(`
    select body, hidden, merchant from objects
    where kind = ? and customer = ? and number < ?
    order by number desc limit ?`),
  all: database.prepare(`
    select body, hidden, merchant from objects where kind = ? and number < ?
    order by number desc limit ?`),
  ofCharge: database.prepare(
    "select body, hidden, merchant from objects where charge = ? and kind = 'refund'",
  ),
  number: database.prepare('select number from objects where id = ?'),
  findKey: database.prepare('select * from keys where key = ?'),
  saveKey: database.prepare(`
    insert into keys (key, fingerprint, status, body, request, merchant, at)
    values (?, ?, ?, ?, ?, ?, ?)
    on conflict (key) do update
    set fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
        request = excluded.request, merchant = excluded.merchant, at = excluded.at`),
  forgetting: [
    database.prepare('delete from objects where merchant = ?'),
    database.prepare('delete from keys where merchant = ?'),
    database.prepare('delete from merchants where id = ?'),
  ],
  pruneKeys: database.prepare('delete from keys where merchant = ? and at <= ?'),
  times: database.prepare('select id, now from merchants'),
  saveTime: database.prepare(
    'insert into merchants (id, now) values (?, ?) on conflict (id) do update set now = excluded.now',
  ),
});

/**
 * Keeps the state in one SQLite file. An effect, the answer that is stored under its idempotency
 * key and the merchant's time are committed together. A commit waits for the disk, so that no
 * effect is lost once the caller has its answer.
 */
export class Store {
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareStatements>;
  /** The latest time that each merchant's calls stated. It never moves backwards. */
  readonly #times = new Map<string, number>();
  /** Statements by their SQL. They are few, as lists have few combinations of filters. */
  readonly #texts = new Map<string, StatementSync>();

  constructor(file: string) {
    this.#database = new DatabaseSync(file);
    // The file contains shoppers' names and e-mail addresses.
    if (file !== ':memory:') chmodSync(file, 0o600);
    this.#database.exec(schema);
    this.#statements = prepareStatements(this.#database);
    for (const row of this.#statements.times.all()) {
      this.#times.set(String(row.id), Number(row.now));
    }
  }

  /** All access is synchronous, so requests never share a transaction. */
  transaction<T>(work: () => T): T {
    this.#statements.begin.run();
    try {
      const result = work();
      this.#statements.commit.run();
      return result;
    } catch (error) {
      this.#statements.rollback.run();
      throw error;
    }
  }

  /** Runs a transaction that also saves the time of the calling merchant. */
  write<T>(merchant: string, work: () => T): T {
    return this.transaction(() => {
      this.saveTime(merchant);
      return work();
    });
  }

  find<K extends Kind>(kind: K, id: string): Kept<K> | null {
    const row = this.#statements.find.get(id, kind);
    return row === undefined ? null : kept<K>(row);
  }

  save<K extends Kind>(kind: K, { object, hidden, merchant }: Kept<K>): void {
    const { id, customer, charge } = object as {
      id: string;
      customer?: unknown;
      charge?: unknown;
    };
    this.#statements.save.run(
      id,
      kind,
      merchant,
      typeof customer === 'string' ? customer : null,
      kind === 'refund' && typeof charge === 'string' ? charge : null,
      JSON.stringify(object),
      JSON.stringify(hidden),
    );
  }

  /** Lists objects, newest first; with `after`, only those older than that object. */
  list<K extends Kind>(
    kind: K,
    filter: { customer?: string | undefined; after?: string | undefined; limit: number },
  ): Kept<K>[] {
    const after =
      filter.after === undefined ? undefined : this.#statements.number.get(filter.after);
    const below = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after.number);
    const rows =
      filter.customer === undefined
        ? this.#statements.all.all(kind, below, filter.limit)
        : this.#statements.ofCustomer.all(kind, filter.customer, below, filter.limit);
    return rows.map((row) => kept<K>(row));
  }

  /** Lists the objects next to the cursor: newest first, or oldest first with `before`. */
  page<K extends Kind>(
    kind: K,
    filter: {
      members: (readonly [name: string, value: string])[];
      created: Record<string, number>;
      after: string | undefined;
      before: string | undefined;
      limit: number;
    },
  ): Kept<K>[] {
    const conditions = ['kind = ?'];
    const values: (string | number)[] = [kind];
    const require = (condition: string, value: string | number) => {
      conditions.push(condition);
      values.push(value);
    };
    for (const [name, value] of filter.members) {
      // `customer` has its own column, and therefore an index.
      require(name === 'customer' ? 'customer = ?' : `body ->> '$.${name}' = ?`, value);
    }
    for (const [name, value] of Object.entries(filter.created)) {
      require(`body ->> '$.created' ${comparisons[name]} ?`, value);
    }
    const ofCursor = '(select number from objects where id = ?)';
    if (filter.after !== undefined) require(`number < ${ofCursor}`, filter.after);
    if (filter.before !== undefined) require(`number > ${ofCursor}`, filter.before);
    const order = filter.before === undefined ? 'desc' : 'asc';
    const rows = this.#prepared(`select body, hidden, merchant from objects
      where ${conditions.join(' and ')} order by number ${order} limit ?`).all(
      ...values,
      filter.limit,
    );
    return rows.map((row) => kept<K>(row));
  }

  /**
   * The ids of payments and of setups, newest first. The payments that `since` and `until` name are
   * included.
   */
  payments(filter: {
    customer: string | undefined;
    since?: string | undefined;
    until?: string | undefined;
    limit: number;
  }): { id: string }[] {
    const conditions = ["kind in ('payment_intent', 'setup_intent')"];
    const values: string[] = [];
    if (filter.customer !== undefined) {
      conditions.push('customer = ?');
      values.push(filter.customer);
    }
    for (const [cursor, comparison] of [
      [filter.since, '>='],
      [filter.until, '<='],
    ] as const) {
      if (cursor === undefined) continue;
      conditions.push(`number ${comparison} (select number from objects where id = ?)`);
      values.push(cursor);
    }
    return this.#prepared(
      `select id from objects where ${conditions.join(' and ')} order by number desc limit ?`,
    )
      .all(...values, filter.limit)
      .map((row) => ({ id: String(row.id) }));
  }

  /** Objects whose member has this value, oldest first. */
  withMember<K extends Kind>(kind: K, name: 'charge' | 'source', value: string): Kept<K>[] {
    return this.#prepared(`select body, hidden, merchant from objects
      where kind = ? and body ->> '$.${name}' = ? order by number`)
      .all(kind, value)
      .map((row) => kept<K>(row));
  }

  /** Refunds that failed or will fail after they were made, and whose failure is not booked. */
  refundsToFail(): Kept<'refund'>[] {
    return this.#prepared(`select body, hidden, merchant from objects
      where kind = 'refund' and hidden ->> '$.becomes' = 'failed'
        and hidden ->> '$.isBooked' is null`)
      .all()
      .map((row) => kept<'refund'>(row));
  }

  refundsOf(charge: string): Kept<'refund'>[] {
    return this.#statements.ofCharge.all(charge).map((row) => kept<'refund'>(row));
  }

  findKey(key: string): KeyRecord | null {
    const row = this.#statements.findKey.get(key);
    return row === undefined ? null : (row as unknown as KeyRecord);
  }

  saveKey(key: string, record: KeyRecord): void {
    const { fingerprint, status, body, request, merchant, at } = record;
    this.#statements.saveKey.run(key, fingerprint, status, body, request, merchant, at);
  }

  pruneKeys(merchant: string, before: number): void {
    this.#statements.pruneKeys.run(merchant, before);
  }

  /** Deletes everything that belongs to a merchant. */
  forget(merchant: string): void {
    for (const statement of this.#statements.forgetting) statement.run(merchant);
    this.#times.delete(merchant);
  }

  /** A merchant's time in milliseconds; null if no call has stated one. */
  time(merchant: string): number | null {
    return this.#times.get(merchant) ?? null;
  }

  advanceTime(merchant: string, now: number): void {
    this.#times.set(merchant, Math.max(now, this.#times.get(merchant) ?? now));
  }

  /** Saves a merchant's time together with an effect. A call without an effect need not save it. */
  saveTime(merchant: string): void {
    const now = this.#times.get(merchant);
    if (now !== undefined) this.#statements.saveTime.run(merchant, now);
  }

  close(): void {
    this.#database.close();
  }

  #prepared(text: string): StatementSync {
    const statement = this.#texts.get(text) ?? this.#database.prepare(text);
    this.#texts.set(text, statement);
    return statement;
  }
}

function kept<K extends Kind>(row: Record<string, unknown>): Kept<K> {
  return {
    object: JSON.parse(String(row.body)),
    hidden: JSON.parse(String(row.hidden)),
    merchant: String(row.merchant),
  };
}
