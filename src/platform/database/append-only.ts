import { createHash } from 'node:crypto';
import type pg from 'pg';

/** The columns of a callback attempt that never change. Closing the attempt writes the others. */
export const attemptIdentity = [
  'merchant_id',
  'id',
  'callback_id',
  'number',
  'run',
  'trigger',
  'operator',
  'started_at',
  'request_headers',
];
/** The columns of a closed attempt that erasing a shopper empties (decision 0070). */
const attemptAnswer = ['response_headers', 'response_body'];
const attemptRest = [
  ...attemptIdentity,
  'finished_at',
  'outcome',
  'reason',
  'address',
  'tls_version',
  'response_status',
  'response_header_bytes',
  'response_body_bytes',
  'timings',
];
// Rows are compared as text, because json has no equality.
const rowOf = (row: string, columns: string[]) =>
  `(${columns.map((column) => `${row}.${column}::text`).join(', ')})`;

const messageAttempt = ['merchant_id', 'message_id', 'number', 'at', 'outcome'];

/** Whether an update empties a closed attempt's answer and changes nothing else. */
const isErasure = `(old.finished_at is not null
  and ${attemptAnswer.map((column) => `new.${column} is null`).join(' and ')}
  and ${rowOf('new', attemptRest)} is not distinct from ${rowOf('old', attemptRest)})`;

/**
 * The columns of an entry in a merchant's books that never change. The others name the payout and
 * the monthly statement of which the entry is a line.
 */
const entryIdentity = [
  'merchant_id',
  'id',
  'kind',
  'checkout_id',
  'instalment',
  'refund_id',
  'dispute_id',
  'gross',
  'fee',
  'vat',
  'net',
  'currency',
  'at',
  'release_on',
  'reserve_id',
  'paid_payout_id',
];

/** The columns of a payout that never change once it is issued. */
const payoutIdentity = [
  'merchant_id',
  'id',
  'number',
  'reference',
  'business_on',
  'amount',
  'currency',
  'lines',
  'created_at',
];

/** The columns of an operator's text that keep their values when the text is erased. */
const textIdentity = ['action_id', 'field', 'digest'];

/** Whether an update changes a pair of columns that is already set. */
const isReplaced = (...columns: string[]) =>
  `(old.${columns[0]} is not null
    and ${rowOf('new', columns)} is distinct from ${rowOf('old', columns)})`;

type Guard = {
  table: string;
  on: string;
  when?: string;
  /** The function that decides with a query. If absent, every such change is refused. */
  execute?: string;
};

/**
 * Triggers refuse to change rows that are history, whatever the code does and whichever role
 * connects. `guardTables` has further triggers, for callback attempts. These changes are allowed:
 *
 * - An entry in a merchant's books becomes a line of one payout and of one statement.
 * - A payout moves from state to state.
 * - The end of the chain of operators' actions moves on, one action at a time.
 * - A callback attempt is closed once. It may be deleted once its callback counts it as expired.
 * - A message attempt may be deleted once the archive has it. Rows of the archive may only grow.
 * - Erasing a shopper empties the answers of receivers and mail servers, and operators' texts.
 *
 * Citus tables cannot have triggers. There, the roles of `grant-roles.ts` protect what they can.
 */
const guards: Guard[] = [
  { table: 'postings', on: 'update or delete' },
  { table: 'gateway_account_fees', on: 'update or delete' },
  { table: 'settlement_entries', on: 'delete' },
  {
    table: 'settlement_entries',
    on: 'update',
    // An entry becomes a line of one payout and of one statement, and stays there.
    when: `${isReplaced('payout_id', 'line')} or ${isReplaced('statement', 'statement_line')}
      or ${rowOf('new', entryIdentity)} is distinct from ${rowOf('old', entryIdentity)}`,
  },
  { table: 'monthly_statements', on: 'update or delete' },
  { table: 'payouts', on: 'delete' },
  {
    table: 'payouts',
    on: 'update',
    when: `${rowOf('new', payoutIdentity)} is distinct from ${rowOf('old', payoutIdentity)}`,
  },
  { table: 'operator_actions', on: 'update or delete' },
  { table: 'action_texts', on: 'delete' },
  {
    table: 'action_texts',
    on: 'update',
    // A text is erased once; nothing else about it may change.
    when: `old.text is null or new.text is not null or new.salt is not null
      or ${rowOf('new', textIdentity)} is distinct from ${rowOf('old', textIdentity)}`,
  },
  { table: 'operator_chain', on: 'delete' },
  {
    table: 'operator_chain',
    on: 'update',
    when: 'new.number <> old.number + 1',
  },
  { table: 'published_ends', on: 'update or delete' },
  {
    table: 'callback_attempts',
    // The statement that closes an attempt names none of these columns, so the server need not
    // parse this long condition for each such statement.
    on: `update of ${attemptIdentity.join(', ')}`,
    when: `${rowOf('new', attemptIdentity)} is distinct from ${rowOf('old', attemptIdentity)}`,
  },
  { table: 'message_attempts', on: 'delete', execute: 'refuse_unless_archived' },
  {
    table: 'message_attempts',
    on: 'update',
    when: `new.response <> 'erased'
      or ${rowOf('new', messageAttempt)} is distinct from ${rowOf('old', messageAttempt)}`,
  },
  { table: 'archived_messages', on: 'delete' },
  { table: 'archived_messages', on: 'update', execute: 'refuse_unless_kept' },
];

const tables = [...new Set(guards.map(({ table }) => table))];
const nameOf = ({ table, on }: Guard) => `${table}_${on.split(' ')[0]}_guard`;

/**
 * Creates the triggers, or replaces those of an earlier version. Both lock a table against writes,
 * so a trigger that is already correct is left alone.
 */
export async function guardTables(client: pg.ClientBase): Promise<void> {
  // A session's temporary table must not take the place of `callbacks`.
  const { rows } = await client.query<{ schema: string }>(
    'select quote_ident(current_schema()) as schema',
  );
  const path = `set search_path = ${rows[0]?.schema}, pg_temp`;
  await client.query(`
    create or replace function refuse_change() returns trigger language plpgsql ${path} as $$
    begin
      raise exception '% is append-only', tg_table_name using errcode = 'insufficient_privilege';
    end $$`);
  await client.query(`
    create or replace function refuse_unless_expired() returns trigger language plpgsql ${path} as $$
    begin
      if exists (select from callbacks c where c.merchant_id = old.merchant_id
          and c.id = old.callback_id and c.attempts_expired >= old.number
          and c.due_at is null) then
        return null;
      end if;
      raise exception '% is append-only until its rows expire', tg_table_name
        using errcode = 'insufficient_privilege';
    end $$`);
  await client.query(`
    create or replace function refuse_unless_erased() returns trigger language plpgsql ${path} as $$
    begin
      if not ${isErasure} then
        raise exception '% is append-only', tg_table_name using errcode = 'insufficient_privilege';
      end if;
      if exists (select from callbacks k
          join checkouts c on c.id = k.checkout_id and c.merchant_id = k.merchant_id
          where k.merchant_id = old.merchant_id and k.id = old.callback_id
          and c.erased_at is not null) then
        return new;
      end if;
      raise exception '% is append-only until its shopper is erased', tg_table_name
        using errcode = 'insufficient_privilege';
    end $$`);
  await guardArchive(client, path);
  await guardDeletions(client);
  await createTrigger(client, {
    name: 'callback_attempts_erase_guard',
    head: 'before update on callback_attempts',
    // This trigger does not run for the update that closes an attempt for the first time.
    each: 'for each row when (old.finished_at is not null or new.finished_at is null)',
    execute: 'refuse_unless_erased',
  });
  for (const guard of guards) {
    const { table, on, when, execute = 'refuse_change' } = guard;
    await createTrigger(client, {
      name: nameOf(guard),
      head: `before ${on} on ${table}`,
      each: `for each row ${when ? `when (${when})` : ''}`,
      execute,
    });
  }
  for (const table of tables) {
    await createTrigger(client, {
      name: `${table}_truncate_guard`,
      head: `before truncate on ${table}`,
      each: 'for each statement',
      execute: 'refuse_change',
    });
  }
}

/**
 * Creates two trigger functions (decision 0068). A message attempt may be deleted only if the
 * archive has it. A row of the archive only grows, except that answers in it may be erased.
 */
async function guardArchive(client: pg.ClientBase, path: string): Promise<void> {
  await client.query(`
    create or replace function refuse_unless_archived() returns trigger language plpgsql ${path} as $$
    begin
      if exists (select from messages m
          join archived_messages a on a.merchant_id = m.merchant_id and a.checkout_id = m.checkout_id
          where m.merchant_id = old.merchant_id and m.id = old.message_id
          and a.attempts @> jsonb_build_array(to_jsonb(old) - 'merchant_id')) then
        return old;
      end if;
      raise exception '% is append-only until its rows are archived', tg_table_name
        using errcode = 'insufficient_privilege';
    end $$`);
  await client.query(`
    create or replace function refuse_unless_kept() returns trigger language plpgsql ${path} as $$
    begin
      if new.merchant_id = old.merchant_id and new.checkout_id = old.checkout_id
          and new.messages @> old.messages
          and not exists (select from jsonb_array_elements(old.attempts) a
            where not new.attempts @> jsonb_build_array(a)
            and not new.attempts @> jsonb_build_array(a || '{"response": "erased"}')) then
        return new;
      end if;
      raise exception '% only grows, and only answers are erased', tg_table_name
        using errcode = 'insufficient_privilege';
    end $$`);
}

/**
 * Creates the trigger for deleted callback attempts. It checks at the end of a transaction, because
 * the transaction may delete attempts before or after it counts them as expired. Such a constraint
 * trigger cannot be replaced, and dropping it would wait for every backup that reads the table. So
 * it is left alone if it is already correct.
 */
async function guardDeletions(client: pg.ClientBase): Promise<void> {
  const { rowCount } = await client.query(
    `select from pg_trigger
     where tgname = 'callback_attempts_delete_guard' and tgrelid = 'callback_attempts'::regclass
       and pg_get_triggerdef(oid) like '% AFTER DELETE ON %callback_attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %refuse\\_unless\\_expired()'
       and tgenabled = 'O'`,
  );
  if (rowCount === 1) return;
  await client.query('drop trigger if exists callback_attempts_delete_guard on callback_attempts');
  await client.query(`create constraint trigger callback_attempts_delete_guard
    after delete on callback_attempts deferrable initially deferred
    for each row execute function refuse_unless_expired()`);
}

/**
 * Creates or replaces a trigger. Its argument is a digest of its definition, by which a later start
 * recognises that the trigger is already correct.
 */
async function createTrigger(
  client: pg.ClientBase,
  { name, head, each, execute }: { name: string; head: string; each: string; execute: string },
): Promise<void> {
  const digest = createHash('sha256').update(`${head} ${each} ${execute}`).digest('hex');
  const { rowCount } = await client.query(
    `select from pg_trigger where tgname = $1 and tgrelid = to_regclass($2)
     and tgargs = convert_to($3, 'UTF8') || '\\x00' and tgenabled = 'O'`,
    [name, head.split(' on ')[1], digest],
  );
  if (rowCount === 1) return;
  await client.query(
    `create or replace trigger ${name} ${head} ${each} execute function ${execute}('${digest}')`,
  );
}

/** Drops the triggers, because Citus refuses to distribute a table that has triggers. */
export async function dropGuards(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string; trigger: string }>(
    `select tgrelid::regclass::text as name, quote_ident(tgname) as trigger from pg_trigger
     where tgname like '%\\_guard' and tgrelid::regclass::text = any ($1)`,
    [tables],
  );
  for (const { name, trigger } of rows) await client.query(`drop trigger ${trigger} on ${name}`);
}
