import type { ColumnType, Generated, JSONColumnType } from 'kysely';
import type { Authentication, DeclineReason, Evidence } from '#gateway/gateway.ts';
import type { Rule } from '#merchants/merchant.ts';
import type {
  LongActActor,
  LongActKind,
  LongActProblem,
  LongActWanted,
} from '#operating/acts/long-act.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import type {
  AttemptOutcome as AttemptOutcomeName,
  CallbackStatus,
  CallbackTrigger as CallbackTriggerName,
} from '#purchases/callbacks/callback.ts';
import type { CheckoutStatus, Customer, LineItem } from '#purchases/checkouts/checkout.ts';
import type { DisputeStatus } from '#purchases/disputes/dispute.ts';
import type {
  CollectionKind,
  CollectionStatus,
  InstalmentStatus,
} from '#purchases/instalments/instalment.ts';
import type {
  MessageFacts,
  MessageKind,
  AttemptOutcome as MessageOutcomeName,
  MessageStatus,
} from '#purchases/messages/message.ts';
import type { AttemptStatus, Consent } from '#purchases/payments/payment-attempt.ts';
import type { PayoutStatus } from '#purchases/payouts/payout.ts';
import type { StatementMailStatus } from '#purchases/payouts/statement-mail.ts';
import type { RefundPartKind, RefundPartStatus, RefundStatus } from '#purchases/refunds/refund.ts';
import type {
  Purpose as PurposeName,
  ShopperAttemptStatus,
} from '#purchases/shoppers/shopper-attempt.ts';
import type { Account, MovementKind } from '#record/ledger/posting.ts';
import type {
  EntryKind,
  Funding as FundingName,
  RefundFee as RefundFeeName,
} from '#record/ledger/settlement.ts';

// The tables that the migrations make, as types. A test compares the two.

/** Written once, never updated. */
type Fixed<T> = ColumnType<T, T, never>;

type ReceivedHeaders = Record<string, string | string[]>;
type Timings = Record<string, number>;

export type Tables = {
  installation: {
    only_row: ColumnType<boolean, never, never>;
    environment: Fixed<'sandbox' | 'production'>;
    created_at: Fixed<Timestamp>;
    master_key_mark: Buffer | null;
  };
  territories: {
    code: Fixed<string>;
    currency: Fixed<string>;
    time_zone: Fixed<string>;
    locale: Fixed<string>;
    payment_min: ColumnType<number, never, never>;
  };
  merchants: {
    id: Fixed<string>;
    name: string;
    territory: Fixed<string>;
    rules: JSONColumnType<Rule[]>;
    created_at: Fixed<Timestamp>;
    clock_ahead_ms: Generated<number>;
    preselected_term: number | null;
    short_name: string | null;
    no_fees: Generated<boolean>;
    four_eyes_above: number | null;
  };
  integrations: {
    id: Fixed<string>;
    merchant_id: Fixed<string | null>;
    intermediary: Fixed<boolean>;
    refund_mode: 'manual' | 'auto';
    signing_required_at: Timestamp | null;
    revoked_at: Timestamp | null;
    created_at: Fixed<Timestamp>;
  };
  managed_merchants: {
    integration_id: Fixed<string>;
    merchant_id: Fixed<string>;
    added_at: Fixed<Timestamp>;
  };
  integration_limits: {
    integration_id: Fixed<string>;
    endpoint: Fixed<string>;
    max_requests: number;
    window_seconds: number;
  };
  client_secrets: {
    secret_hash: Fixed<Buffer>;
    integration_id: Fixed<string>;
    created_at: Fixed<Timestamp>;
    expires_at: Timestamp | null;
  };
  signing_keys: {
    id: Fixed<string>;
    integration_id: Fixed<string>;
    sealed_key: Buffer;
    created_at: Fixed<Timestamp>;
    expires_at: Timestamp | null;
    first_used_at: Timestamp | null;
  };
  list_totals: {
    merchant_id: Fixed<string>;
    list: Fixed<'checkouts' | 'refund_requests' | 'payouts'>;
    total: number;
    last_created_at: Timestamp;
  };
  checkouts: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    number: Fixed<number>;
    integration_id: Fixed<string>;
    status: CheckoutStatus;
    amount: Fixed<number>;
    currency: Fixed<string>;
    client_reference_id: Fixed<string>;
    notify_url: Fixed<string>;
    success_url: Fixed<string>;
    cancel_url: Fixed<string>;
    customer: JSONColumnType<Customer, string, never>;
    line_items: JSONColumnType<LineItem[], string, never>;
    terms: Fixed<number[]>;
    number_of_payments: number | null;
    signed: Fixed<boolean>;
    created_at: Fixed<Timestamp>;
    expires_at: Fixed<Timestamp>;
    completed_at: Timestamp | null;
    sealed_verify: Fixed<Buffer | null>;
    language: Language | null;
    erased_at: Timestamp | null;
  };
  refund_requests: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    number: Fixed<number>;
    checkout_id: Fixed<string>;
    integration_id: Fixed<string>;
    status: RefundStatus;
    amount: Fixed<number>;
    currency: Fixed<string>;
    signed: Fixed<boolean>;
    created_at: Fixed<Timestamp>;
    approved_at: Timestamp | null;
    completed_at: Timestamp | null;
    reason: string | null;
    kept: Generated<number>;
    due_at: Timestamp | null;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
    requested_by: Fixed<string | null>;
    requested_by_name: Fixed<string | null>;
    request_reason: string | null;
    first_approved_by: string | null;
    first_approved_by_name: string | null;
    first_approved_at: Timestamp | null;
  };
  refund_parts: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string>;
    refund_id: Fixed<string>;
    round: Fixed<number>;
    number: Fixed<number>;
    instalment: Fixed<number>;
    kind: Fixed<RefundPartKind>;
    status: RefundPartStatus;
    amount: Fixed<number>;
    from_status: Fixed<InstalmentStatus>;
    payment_ref: Fixed<string | null>;
    key_number: Generated<number>;
    keyed_at: Timestamp;
    asked_at: Timestamp | null;
    refund_ref: string | null;
    settled_at: Timestamp | null;
  };
  postings: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string>;
    kind: Fixed<MovementKind>;
    debit: Fixed<Account>;
    credit: Fixed<Account>;
    amount: Fixed<number>;
    currency: Fixed<string>;
    instalment: Fixed<number | null>;
    refund_id: Fixed<string | null>;
    dispute_id: Fixed<string | null>;
    at: Fixed<Timestamp>;
  };
  holidays: {
    territory: Fixed<string>;
    on_date: Fixed<string>;
    name: Fixed<string>;
  };
  settlement_terms: {
    merchant_id: Fixed<string>;
    from_on: Fixed<string>;
    funding: FundingName;
    basis_points: number;
    fixed: number;
    vat_basis_points: number;
    refund_fee: RefundFeeName;
    reserve_basis_points: number;
    reserve_days: number;
    created_at: Timestamp;
  };
  payouts: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    number: Fixed<number>;
    reference: Fixed<string>;
    business_on: Fixed<string>;
    amount: Fixed<number>;
    currency: Fixed<string>;
    lines: Fixed<number>;
    status: PayoutStatus;
    created_at: Fixed<Timestamp>;
    first_approver: string | null;
    approver: string | null;
    approved_at: Timestamp | null;
    export_id: string | null;
    exported_at: Timestamp | null;
    paid_at: Timestamp | null;
    bank_reference: string | null;
    returned_at: Timestamp | null;
    return_reason: string | null;
    return_noted_by: string | null;
    bank_account: number | null;
    compare_since: Timestamp | null;
  };
  bank_accounts: {
    merchant_id: Fixed<string>;
    number: Fixed<number>;
    holder: Fixed<string>;
    bank: Fixed<string>;
    branch_code: Fixed<string>;
    sealed_account: Buffer;
    last4: Fixed<string>;
    created_at: Fixed<Timestamp>;
    proposed_by: Fixed<string>;
    proposed_person_id: Fixed<string | null>;
    confirmed_by: string | null;
    confirmed_person_id: string | null;
    confirmed_at: Timestamp | null;
  };
  statement_addresses: {
    merchant_id: Fixed<string>;
    email: Fixed<string>;
    changed_at: Fixed<Timestamp>;
  };
  statement_mails: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    payout_id: Fixed<string>;
    status: StatementMailStatus;
    created_at: Fixed<Timestamp>;
    due_at: Timestamp | null;
    settled_at: Timestamp | null;
    tries: Generated<number>;
    response: string | null;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  settlement_entries: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    kind: Fixed<EntryKind>;
    checkout_id: Fixed<string | null>;
    instalment: Fixed<number | null>;
    refund_id: Fixed<string | null>;
    dispute_id: Fixed<string | null>;
    gross: Fixed<number>;
    fee: Fixed<number>;
    vat: Fixed<number>;
    net: Fixed<number>;
    currency: Fixed<string>;
    at: Fixed<Timestamp>;
    release_on: Fixed<string | null>;
    reserve_id: Fixed<string | null>;
    paid_payout_id: Fixed<string | null>;
    payout_id: string | null;
    line: number | null;
  };
  disputes: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    dispute_ref: Fixed<string>;
    checkout_id: Fixed<string>;
    instalment: Fixed<number>;
    payment_ref: Fixed<string>;
    amount: number;
    currency: Fixed<string>;
    reason: string;
    network_reason_code: string | null;
    status: DisputeStatus;
    created_at: Fixed<Timestamp>;
    due_by: Timestamp | null;
    withdrawn: number;
    fee: number;
    is_pausing: boolean;
    warned_at: Timestamp | null;
    staged_at: Timestamp | null;
    staged_evidence: JSONColumnType<Evidence | null, string | null, string | null>;
    staged_hash: string | null;
    submitting_at: Timestamp | null;
    submitting_until: Timestamp | null;
    submitted_at: Timestamp | null;
    closed_at: Timestamp | null;
    due_at: Timestamp | null;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  payout_days: {
    merchant_id: Fixed<string>;
    due_at: Timestamp;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
    compare_before: Timestamp | null;
  };
  reconciliation: {
    only_row: ColumnType<boolean, never, never>;
    due_at: Timestamp | null;
    leased_until: Timestamp | null;
  };
  dispute_poll: {
    only_row: ColumnType<boolean, never, never>;
    reached: string | null;
  };
  gateway_mark: {
    only_row: ColumnType<boolean, never, never>;
    id: string | null;
    beat: Generated<number>;
    beat_at: Timestamp | null;
    server: string | null;
    stopped_at: Timestamp | null;
    stopped_reason: string | null;
    due_at: Timestamp | null;
  };
  gateway_blocks: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    reference: Fixed<string>;
    alert_id: string;
    created_at: Fixed<Timestamp>;
    cleared_at: Timestamp | null;
  };
  reconciliation_runs: {
    id: Fixed<string>;
    from_at: Fixed<Timestamp | null>;
    to_at: Fixed<Timestamp | null>;
    adopts: Fixed<boolean>;
    kind: string | null;
    after: string | null;
    checked: Generated<number>;
    began_at: Fixed<Timestamp>;
    ended_at: Timestamp | null;
  };
  reconciliation_seen: {
    run_id: Fixed<string>;
    reference: Fixed<string>;
  };
  reconciliation_findings: {
    run_id: Fixed<string>;
    record_kind: Fixed<string>;
    reference: Fixed<string>;
    kind: string;
    of_merchant: string | null;
    checkout_id: string | null;
    record: JSONColumnType<object | null, string | null, null>;
    created_at: Timestamp | null;
    alert_id: string | null;
    outcome: 'adopted' | 'blocked' | 'reported' | null;
  };
  gateway_fees: {
    transaction_ref: Fixed<string>;
    type: Fixed<string>;
    payment_ref: Fixed<string>;
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    fee: Fixed<number>;
    currency: Fixed<string>;
    at: Fixed<Timestamp>;
  };
  gateway_account_fees: {
    transaction_ref: Fixed<string>;
    type: Fixed<string>;
    fee: Fixed<number>;
    currency: Fixed<string>;
    at: Fixed<Timestamp>;
  };
  audit: {
    only_row: ColumnType<boolean, never, never>;
    after: string;
    leased_until: Timestamp | null;
    began_at: Timestamp | null;
    differences: Generated<number>;
    proved_at: Timestamp | null;
    proved_differences: number | null;
    after_merchant: string | null;
  };
  idempotency_keys: {
    integration_id: Fixed<string>;
    key: Fixed<string>;
    fingerprint: Buffer;
    status: 200 | 422;
    answer: JSONColumnType<object>;
    created_at: Timestamp;
  };
  nodes: {
    id: Fixed<string>;
    host: Fixed<string>;
    process_id: Fixed<number>;
    program_version: Fixed<number>;
    started_at: Fixed<Timestamp>;
    seen_at: Timestamp;
  };
  rate_limits: {
    key: Fixed<string>;
    count: number;
    resets_at: Timestamp;
  };
  payment_attempts: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string>;
    number: Fixed<number>;
    status: AttemptStatus;
    number_of_payments: Fixed<number>;
    amount: Fixed<number>;
    currency: Fixed<string>;
    sealed_card_token: Buffer | null;
    consent: JSONColumnType<Consent | null, string | null, never>;
    customer_ref: string | null;
    payment_ref: string | null;
    challenge_url: string | null;
    card_ref: string | null;
    card_brand: string | null;
    card_last4: string | null;
    card_expires: string | null;
    authentication: JSONColumnType<Authentication | null, string | null, string | null>;
    capture_before: Timestamp | null;
    decline_reason: DeclineReason | null;
    may_retry: boolean | null;
    decline_code: string | null;
    network_decline_code: string | null;
    created_at: Fixed<Timestamp>;
    asked_at: Timestamp | null;
    settled_at: Timestamp | null;
    due_at: Timestamp | null;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
    written_id: Fixed<string | null>;
  };
  instalments: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    number: Fixed<number>;
    amount: Fixed<number>;
    currency: Fixed<string>;
    due_on: Fixed<string>;
    status: InstalmentStatus;
    reduced: Generated<number>;
    payment_ref: string | null;
    collected_at: Timestamp | null;
    declines: Generated<number>;
    due_at: Timestamp | null;
    paused: Generated<boolean>;
    shopper_attempt: string | null;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  collections: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string>;
    instalment: Fixed<number>;
    number: Fixed<number>;
    kind: Fixed<CollectionKind>;
    status: CollectionStatus;
    amount: Fixed<number>;
    currency: Fixed<string>;
    card_ref: Fixed<string | null>;
    customer_ref: Fixed<string | null>;
    payment_ref: string | null;
    decline_reason: DeclineReason | null;
    may_retry: boolean | null;
    decline_code: string | null;
    network_decline_code: string | null;
    created_at: Fixed<Timestamp>;
    asked_at: Timestamp;
    settled_at: Timestamp | null;
  };
  stored_cards: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    customer_ref: Fixed<string>;
    card_ref: Fixed<string>;
    brand: Fixed<string | null>;
    last4: Fixed<string | null>;
    expires: Fixed<string | null>;
    consent: JSONColumnType<Consent, string, never>;
    created_at: Fixed<Timestamp>;
  };
  replaced_cards: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    card_ref: Fixed<string>;
    customer_ref: Fixed<string>;
    brand: Fixed<string | null>;
    last4: Fixed<string | null>;
    expires: Fixed<string | null>;
    consent: JSONColumnType<Consent, string, never>;
    created_at: Fixed<Timestamp>;
    replaced_at: Fixed<Timestamp>;
    detached_at: Timestamp | null;
    due_at: Timestamp | null;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  shopper_attempts: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string>;
    number: Fixed<number>;
    purpose: Fixed<PurposeName>;
    status: ShopperAttemptStatus;
    instalments: Fixed<number[]>;
    amount: Fixed<number>;
    currency: Fixed<string>;
    sealed_card_token: Buffer | null;
    uses_stored_card: Fixed<boolean>;
    keeps_card: Fixed<boolean>;
    consent: JSONColumnType<Consent | null, string | null, never>;
    customer_ref: Fixed<string>;
    payment_ref: string | null;
    challenge_url: string | null;
    card_ref: string | null;
    card_brand: string | null;
    card_last4: string | null;
    card_expires: string | null;
    authentication: JSONColumnType<Authentication | null, string | null, string | null>;
    decline_reason: DeclineReason | null;
    may_retry: boolean | null;
    decline_code: string | null;
    network_decline_code: string | null;
    created_at: Fixed<Timestamp>;
    asked_at: Timestamp | null;
    settled_at: Timestamp | null;
    due_at: Timestamp | null;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  callbacks: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string>;
    integration_id: Fixed<string>;
    notify_url: Fixed<string>;
    payload: Fixed<Buffer>;
    status: CallbackStatus;
    created_at: Fixed<Timestamp>;
    due_at: Timestamp | null;
    attempts: Generated<number>;
    run: Generated<number>;
    run_attempts: Generated<number>;
    attempts_expired: Generated<number>;
    host: ColumnType<string, never, never>;
    redirect_url: string | null;
    delivered_at: Timestamp | null;
    lease: string | null;
    leased_until: Timestamp | null;
    sealed_verify: Fixed<Buffer | null>;
    sent_attempt: number | null;
  };
  callback_attempts: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    callback_id: Fixed<string>;
    number: Fixed<number>;
    run: Fixed<number>;
    trigger: Fixed<CallbackTriggerName>;
    operator: Fixed<string | null>;
    started_at: Fixed<Timestamp>;
    finished_at: Timestamp | null;
    outcome: AttemptOutcomeName;
    reason: string | null;
    request_headers: JSONColumnType<Record<string, string>, string, never>;
    address: string | null;
    tls_version: string | null;
    response_status: number | null;
    response_headers: JSONColumnType<ReceivedHeaders | null, string | null, string | null>;
    response_body: Buffer | null;
    response_header_bytes: number | null;
    response_body_bytes: number | null;
    timings: JSONColumnType<Timings | null, string | null, string | null>;
  };
  checkout_moves: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    from_status: Fixed<'received'>;
    to_status: Fixed<Exclude<CheckoutStatus, 'received'>>;
    at: Fixed<Timestamp>;
  };
  operator_actions: {
    id: Fixed<string>;
    at: Fixed<Timestamp>;
    operator: Fixed<string>;
    action: Fixed<string>;
    subject_id: Fixed<string | null>;
    details: JSONColumnType<object, string, never>;
    os_user: Fixed<string | null>;
    host: Fixed<string | null>;
    number: Fixed<number | null>;
    hash: Fixed<Buffer | null>;
    person_id: Fixed<string | null>;
    roles: Fixed<string[] | null>;
    address: Fixed<string | null>;
    session_id: Fixed<string | null>;
  };
  people: {
    id: Fixed<string>;
    email: Fixed<string>;
    name: string;
    roles: string[];
    merchant_ids: string[] | null;
    oidc_subject: string | null;
    created_at: Fixed<Timestamp>;
    revoked_at: Timestamp | null;
  };
  person_links: {
    token_hash: Fixed<Buffer>;
    person_id: Fixed<string>;
    purpose: Fixed<'register' | 'sign_in'>;
    created_at: Fixed<Timestamp>;
    expires_at: Fixed<Timestamp>;
    used_at: Timestamp | null;
  };
  passkeys: {
    id: Fixed<string>;
    person_id: Fixed<string>;
    credential_id: Fixed<string>;
    public_key: Fixed<Buffer>;
    counter: number;
    transports: Fixed<string[]>;
    name: string;
    created_at: Fixed<Timestamp>;
    used_at: Timestamp | null;
  };
  console_sessions: {
    id: Fixed<string>;
    token_hash: Fixed<Buffer>;
    person_id: Fixed<string>;
    method: Fixed<'passkey' | 'oidc' | 'sandbox_link'>;
    address: Fixed<string>;
    user_agent: Fixed<string>;
    created_at: Fixed<Timestamp>;
    seen_at: Timestamp;
    expires_at: Fixed<Timestamp>;
    proof_at: Timestamp | null;
    ended_at: Timestamp | null;
  };
  console_challenges: {
    challenge_hash: Fixed<Buffer>;
    purpose: Fixed<'register' | 'sign_in' | 'proof' | 'oidc'>;
    person_id: Fixed<string | null>;
    session_id: Fixed<string | null>;
    sealed_oidc: Fixed<Buffer | null>;
    expires_at: Fixed<Timestamp>;
  };
  operator_chain: {
    id: Fixed<boolean>;
    number: number;
    hash: Buffer;
    first_count: Fixed<number>;
    first_hash: Fixed<Buffer>;
  };
  alerts: {
    id: Fixed<string>;
    at: Fixed<Timestamp>;
    kind: Fixed<string>;
    integration_id: Fixed<string | null>;
    merchant_id: Fixed<string | null>;
    subject_id: Fixed<string | null>;
    detail: Fixed<string>;
    posted_at: Timestamp | null;
    tries: Generated<number>;
    due_at: Timestamp | null;
    taken_at: Timestamp | null;
    taken_by: string | null;
    taken_person_id: string | null;
    closed_at: Timestamp | null;
    closed_by: string | null;
    closed_person_id: string | null;
    close_reason: string | null;
  };
  destinations: {
    merchant_id: Fixed<string>;
    host: Fixed<string>;
    failures: number;
    alerted: boolean;
  };
  destination_days: {
    merchant_id: Fixed<string>;
    host: Fixed<string>;
    day: Fixed<string>;
    attempts: number;
    delivered: number;
    buckets: number[];
  };
  destination_states: {
    merchant_id: Fixed<string>;
    host: Fixed<string>;
    last_attempt_at: Timestamp;
    last_error: string | null;
    last_error_at: Timestamp | null;
  };
  notes: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string>;
    at: Fixed<Timestamp>;
    person_id: Fixed<string | null>;
    name: Fixed<string>;
    text: string;
  };
  checkout_opens: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    id: Fixed<string>;
    at: Fixed<Timestamp>;
  };
  rollups: {
    stream: Fixed<'checkouts' | 'opens' | 'attempts' | 'postings'>;
    after: string;
    as_of: Timestamp | null;
  };
  merchant_days: {
    merchant_id: Fixed<string>;
    day: Fixed<string>;
    created: Generated<number>;
    opened: Generated<number>;
    tried: Generated<number>;
    paid: Generated<number>;
    approved: Generated<number>;
    declined: Generated<number>;
    sold: Generated<number>;
    collected: Generated<number>;
    refunded: Generated<number>;
  };
  merchant_declines: {
    merchant_id: Fixed<string>;
    day: Fixed<string>;
    reason: Fixed<string>;
    count: number;
  };
  merchant_dues: {
    merchant_id: Fixed<string>;
    day: Fixed<string>;
    amount: number;
  };
  merchant_overdue: {
    merchant_id: Fixed<string>;
    amount: number;
    as_of: Timestamp;
  };
  long_acts: {
    id: Fixed<string>;
    kind: Fixed<LongActKind>;
    actor: JSONColumnType<LongActActor, string, never>;
    wanted: JSONColumnType<LongActWanted, string, never>;
    created_at: Fixed<Timestamp>;
    finished_at: Timestamp | null;
    total: number | null;
    done: Generated<number>;
    failed: Generated<number>;
    problems: JSONColumnType<LongActProblem[]>;
    position: string | null;
    due_at: Timestamp | null;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  messages: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string>;
    kind: Fixed<MessageKind>;
    about: Fixed<string>;
    facts: JSONColumnType<MessageFacts, string, never>;
    sealed_token: Buffer | null;
    status: MessageStatus;
    created_at: Fixed<Timestamp>;
    planned_at: Fixed<Timestamp>;
    due_at: Timestamp | null;
    settled_at: Timestamp | null;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  message_attempts: {
    merchant_id: Fixed<string>;
    message_id: Fixed<string>;
    number: Fixed<number>;
    at: Fixed<Timestamp>;
    outcome: Fixed<MessageOutcomeName>;
    response: Fixed<string>;
  };
  mailbox: {
    merchant_id: Fixed<string>;
    id: Fixed<string>;
    checkout_id: Fixed<string | null>;
    sent_at: Fixed<Timestamp>;
    sender: Fixed<string>;
    recipient: Fixed<string>;
    subject: Fixed<string>;
    text: Fixed<string>;
    html: Fixed<string>;
  };
  retention_marks: {
    merchant_id: Fixed<string>;
    number: number;
    due_at: Timestamp;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  erasures: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    due_at: Timestamp;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  deleted_customers: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    customer_ref: Fixed<string>;
    due_at: Timestamp | null;
    deleted_at: Timestamp | null;
    tries: Generated<number>;
    lease: string | null;
    leased_until: Timestamp | null;
  };
  plan_links: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    token_hash: Fixed<Buffer>;
    created_at: Fixed<Timestamp>;
    expires_at: Fixed<Timestamp>;
    used_at: Timestamp | null;
  };
  plan_sessions: {
    merchant_id: Fixed<string>;
    checkout_id: Fixed<string>;
    session_hash: Fixed<Buffer>;
    created_at: Fixed<Timestamp>;
    expires_at: Fixed<Timestamp>;
  };
  legacy_credentials: {
    client_id: Fixed<string>;
    integration_id: Fixed<string>;
    secret_hash: Fixed<Buffer>;
    created_at: Fixed<Timestamp>;
    disabled_at: Timestamp | null;
  };
  legacy_tokens: {
    token_hash: Fixed<Buffer>;
    merchant_id: Fixed<string>;
    client_id: Fixed<string>;
    created_at: Fixed<Timestamp>;
    expires_at: Fixed<Timestamp>;
  };
  legacy_usage: {
    integration_id: Fixed<string>;
    day: Fixed<string>;
    logins: Generated<number>;
    checkouts: Generated<number>;
  };
};
