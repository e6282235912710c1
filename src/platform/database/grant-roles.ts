import type pg from 'pg';
import { attemptIdentity } from './append-only.ts';
import type { Database } from './database.ts';
import { distribution, isDistributed } from './distribute-database.ts';
import { programVersion, readVersions } from './migrate.ts';

/**
 * The permissions of the roles. The owner of the tables migrates. `serve` runs the service and the
 * commands but cannot change the schema or history. `read` reads everything but credentials.
 */
export const roleKinds = ['serve', 'read'] as const;
export type RoleKind = (typeof roleKinds)[number];

/** Tables on which `serve` has less than select, insert, update and delete. */
const servePrivileges: Partial<Record<string, string>> = {
  schema_migrations: 'select',
  territories: 'select',
  holidays: 'select',
  // `transaction` locks this table's row when it looks for what an unanswered COMMIT wrote, and
  // PostgreSQL allows that lock only to roles that may update the row.
  installation: 'select, insert, update (key_check)',
  postings: 'select, insert',
  operator_actions: 'select, insert',
  action_texts: 'select, insert, update (salt, text, erased_at)',
  operator_chain: 'select, update (number, hash)',
  published_ends: 'select, insert',
  monthly_statements: 'select, insert',
  message_attempts: 'select, insert, update (response)',
  // `serve` may not insert here: the owner of the tables moves messages to the archive.
  archived_messages: 'select, update (attempts)',
};

/**
 * Tables that `read` may not read. They hold secrets, hashes of tokens, bank accounts, or answers
 * and mails that contain secrets.
 */
const credentials = new Set([
  'client_secrets',
  'bank_accounts',
  'signing_keys',
  'legacy_credentials',
  'legacy_tokens',
  'idempotency_keys',
  'person_links',
  'passkeys',
  'console_sessions',
  'console_challenges',
  'plan_links',
  'late_links',
  'plan_sessions',
  'mailbox',
]);

export class NotOwner extends Error {
  constructor() {
    super('only the owner of the tables can grant rights on them');
  }
}

/** A newer program migrated the database, and may need rights that this one does not know. */
export class GrantsOfNewer extends Error {
  constructor(version: number, codeVersion: number) {
    super(
      `the database is at migration ${version}, but this program knows ${codeVersion} and would ` +
        'revoke what the newer version needs. Run this command from the newer version',
    );
  }
}

/**
 * Gives an existing role its privileges on every table and revokes all others, in one transaction.
 * Run it again after a migration: new tables have no grants yet. The database must not be newer
 * than this program, which would revoke rights on tables that it does not know.
 */
export async function grantRole(database: Database, kind: RoleKind, role: string): Promise<void> {
  const client = await database.pool.connect();
  try {
    const { rows } = await client.query<{ grantee: string; schema: string; owns: boolean }>(
      `select quote_ident($1) as grantee, quote_ident(current_schema()) as schema,
         pg_has_role(relowner, 'member') as owns
       from pg_class where oid = 'checkouts'::regclass`,
      [role],
    );
    const { grantee = '', schema = '', owns } = rows[0] ?? {};
    // PostgreSQL would only warn that nothing was granted.
    if (!owns) throw new NotOwner();
    await client.query('begin');
    const { version } = await readVersions(client);
    const codeVersion = await programVersion();
    if (version > codeVersion) throw new GrantsOfNewer(version, codeVersion);
    await client.query(`revoke all on all tables in schema ${schema} from ${grantee}`);
    await client.query(`grant usage on schema ${schema} to ${grantee}`);
    for (const { table } of distribution) {
      const privileges = await privilegesOf(client, kind, table);
      if (privileges !== null) await client.query(`grant ${privileges} on ${table} to ${grantee}`);
    }
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

async function privilegesOf(
  client: pg.ClientBase,
  kind: RoleKind,
  table: string,
): Promise<string | null> {
  if (kind === 'read') return credentials.has(table) ? null : 'select';
  // Creating a merchant makes Citus lock its territory, and that lock needs the right to write the
  // table.
  if (table === 'territories' && (await isDistributed(client))) return 'select, update (locale)';
  if (table !== 'callback_attempts') {
    return servePrivileges[table] ?? 'select, insert, update, delete';
  }
  const { rows } = await client.query<{ name: string }>(
    `select attname::text as name from pg_attribute
     where attrelid = 'callback_attempts'::regclass and attnum > 0 and not attisdropped`,
  );
  const columns = rows.map(({ name }) => name).filter((name) => !attemptIdentity.includes(name));
  return `select, insert, delete, update (${columns.join(', ')})`;
}
