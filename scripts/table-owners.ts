import type { Tables } from '../src/database/tables.ts';

/**
 * Which slice writes a table: a folder of `src/`, or one file of it. Everything else reads, or
 * calls a use case of the owner with its own transaction. `npm run check` holds the code and the
 * list in ARCHITECTURE.md against this.
 */
export const tableOwners = {
  schema_migrations: ['database/migrate.ts'],
  installation: ['database/installation.ts'],
  // Rows come from migrations only.
  territories: [],
  merchants: ['merchants/'],
  integrations: ['integrations/'],
  managed_merchants: ['integrations/'],
  integration_limits: ['integrations/'],
  client_secrets: ['integrations/'],
  signing_keys: ['integrations/'],
  // Checkouts take their numbers in the statements of their batch.
  list_totals: ['database/merchant-lists.sql.ts', 'checkouts/'],
  checkouts: ['checkouts/'],
  checkout_moves: ['checkouts/'],
  payment_attempts: ['payments/'],
  instalments: ['instalments/'],
  collections: ['instalments/'],
  stored_cards: ['instalments/'],
  callbacks: ['callbacks/'],
  callback_attempts: ['callbacks/'],
  destinations: ['callbacks/'],
  refund_requests: ['refunds/'],
  refund_parts: ['refunds/'],
  plan_links: ['shoppers/'],
  plan_sessions: ['shoppers/'],
  messages: ['messages/'],
  message_attempts: ['messages/'],
  mailbox: ['messages/'],
  postings: ['ledger/'],
  idempotency_keys: ['http/'],
  rate_limits: ['http/'],
  operator_actions: ['operators/'],
  operator_chain: ['operators/'],
  alerts: ['operators/'],
  audit: ['audit/'],
  legacy_credentials: ['legacy/'],
  legacy_tokens: ['legacy/'],
  legacy_usage: ['legacy/'],
} satisfies Record<keyof Tables | 'schema_migrations', string[]>;
