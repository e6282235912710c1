import type { Tables } from '../src/database/tables.ts';

/** Erases personal data in every table (decision 0070). */
const erasure = 'shoppers/erasure.sql.ts';

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
  holidays: [],
  merchants: ['merchants/'],
  integrations: ['integrations/'],
  managed_merchants: ['integrations/'],
  integration_limits: ['integrations/'],
  client_secrets: ['integrations/'],
  signing_keys: ['integrations/'],
  // Checkouts take their numbers in the statements of their batch.
  list_totals: ['database/merchant-lists.sql.ts', 'checkouts/'],
  checkouts: ['checkouts/', erasure],
  checkout_moves: ['checkouts/'],
  payment_attempts: ['payments/', erasure],
  instalments: ['instalments/'],
  collections: ['instalments/'],
  stored_cards: ['instalments/', erasure],
  replaced_cards: ['instalments/', erasure],
  callbacks: ['callbacks/', erasure],
  callback_attempts: ['callbacks/', erasure],
  destinations: ['callbacks/'],
  destination_days: ['callbacks/'],
  destination_states: ['callbacks/'],
  refund_requests: ['refunds/', erasure],
  refund_parts: ['refunds/'],
  plan_links: ['shoppers/'],
  plan_sessions: ['shoppers/'],
  shopper_attempts: ['shoppers/', erasure],
  messages: ['messages/', erasure],
  message_attempts: ['messages/', erasure],
  mailbox: ['messages/', erasure],
  notes: ['operators/', erasure],
  checkout_opens: ['payments/'],
  rollups: ['rollups/'],
  merchant_days: ['rollups/'],
  merchant_declines: ['rollups/'],
  merchant_dues: ['rollups/'],
  merchant_overdue: ['rollups/'],
  long_acts: ['acts/'],
  postings: ['ledger/'],
  settlement_terms: ['ledger/'],
  settlement_entries: ['ledger/'],
  disputes: ['disputes/'],
  payouts: ['payouts/'],
  payout_days: ['payouts/'],
  idempotency_keys: ['http/', erasure],
  rate_limits: ['http/'],
  nodes: ['database/nodes.ts'],
  operator_actions: ['operators/'],
  operator_chain: ['operators/'],
  people: ['operators/'],
  person_links: ['operators/'],
  passkeys: ['operators/'],
  console_sessions: ['operators/'],
  console_challenges: ['operators/'],
  alerts: ['operators/', erasure],
  audit: ['audit/'],
  legacy_credentials: ['legacy/'],
  legacy_tokens: ['legacy/'],
  legacy_usage: ['legacy/'],
} satisfies Record<keyof Tables | 'schema_migrations', string[]>;
