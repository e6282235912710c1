-- Merchants, and the credentials with which they and their intermediaries call the API.

create table merchants (
  id               uuid primary key,
  name             text not null check (length(name) between 1 and 255),
  territory        text not null references territories (code),
  rules            jsonb not null check (jsonb_typeof(rules) = 'array'),
  created_at       timestamptz(3) not null,
  -- In a sandbox every merchant has its own clock, this far ahead of the real one (decision 0017).
  clock_ahead_ms   bigint not null default 0 check (clock_ahead_ms >= 0),
  -- The term that the hosted page selects at first. If null, it selects the shortest.
  preselected_term integer check (preselected_term > 0),
  -- The merchant's name on the shopper's card statement. If null, the beginning of its own name.
  short_name       text,
  -- Whether the hosted page may say that paying in instalments costs the shopper nothing.
  no_fees          boolean not null default false,
  -- The language of its statements.
  language         text not null default 'en' check (language in ('en', 'af', 'zu')),
  -- Pages, mails and receipts show these to shoppers.
  contact          text check (length(contact) between 1 and 200),
  address          text check (length(address) between 1 and 300),
  vat_number       text check (length(vat_number) between 1 and 20),
  -- The SHA-256 of the logo, and its file.
  logo             text check (logo ~ '^[0-9a-f]{64}$'),
  logo_png         bytea check (length(logo_png) <= 100000),
  -- A refund above this many cents needs two people; `"none"` if one person is enough for any
  -- refund. If null, the setting FOUR_EYES_ABOVE applies.
  four_eyes_above  jsonb check (four_eyes_above = '"none"' or jsonb_typeof(four_eyes_above) = 'number'),
  -- Whether an integration that acts for it ever asked for events. While it is false, changes do not
  -- look for receivers. It is never reset, because two concurrent changes of integrations could
  -- overwrite each other.
  has_events       boolean not null default false,
  -- The gateway of new checkouts, by its name in the settings, and the one that stands in for it
  -- while it does not answer. If null, new checkouts use the default.
  gateway          text,
  second_gateway   text check (second_gateway <> gateway),
  check ((logo is null) = (logo_png is null))
);
create index merchants_by_logo on merchants (logo) where logo is not null;
-- Every search for due work reads the furthest clock.
create index merchants_by_clock on merchants (clock_ahead_ms);
create index merchants_by_age on merchants (created_at, id);
-- An operator finds a merchant by the beginning of its name. In byte order a beginning is a range.
create index merchants_by_name on merchants ((lower(name) collate "C"), id);

-- One set of credentials, for one merchant or for an intermediary that manages several.
create table integrations (
  id                  uuid primary key,
  merchant_id         uuid references merchants (id),
  intermediary        boolean not null,
  refund_mode         text not null check (refund_mode in ('manual', 'auto')),
  signing_required_at timestamptz(3),
  revoked_at          timestamptz(3),
  created_at          timestamptz(3) not null,
  -- The kinds of events that it asked for, and their address. If the address is null, events go to
  -- the checkout's notify_url (decision 0033).
  events              text[] not null default '{}'
                      check (events <@ array['refunds', 'disputes', 'payouts']),
  events_url          text,
  check (intermediary = (merchant_id is null))
);
create index integrations_of_merchant on integrations (merchant_id);
create index integrations_by_age on integrations (created_at, id);

create table managed_merchants (
  integration_id uuid not null references integrations (id),
  merchant_id    uuid not null references merchants (id),
  added_at       timestamptz(3) not null,
  primary key (integration_id, merchant_id)
);

create index managed_merchants_of_merchant on managed_merchants (merchant_id);

create table integration_limits (
  integration_id uuid not null references integrations (id),
  endpoint       text not null,
  max_requests   integer not null check (max_requests >= 0),
  window_seconds integer not null check (window_seconds between 1 and 86400),
  primary key (integration_id, endpoint)
);

-- A request is recognised by its secret. Only the hash is stored.
create table client_secrets (
  secret_hash    bytea primary key check (length(secret_hash) = 32),
  integration_id uuid not null references integrations (id),
  created_at     timestamptz(3) not null,
  expires_at     timestamptz(3),
  -- Whether a person created it who may not end the review of refunds, and so knows it.
  seen_without_lift boolean not null default false
);
create index client_secrets_of_integration on client_secrets (integration_id);

-- Signing keys must be readable to sign callbacks, so they are encrypted, not hashed.
create table signing_keys (
  id             uuid primary key,
  integration_id uuid not null references integrations (id),
  sealed_key     bytea not null,
  created_at     timestamptz(3) not null,
  expires_at     timestamptz(3),
  first_used_at  timestamptz(3)
);
create index signing_keys_of_integration on signing_keys (integration_id);

-- The newest requests of an integration whose signature was refused, without credentials. People of
-- the merchant open them in the signature doctor. They are deleted after three days, because a body
-- names a shopper.
create table refused_requests (
  id             uuid primary key,
  integration_id uuid not null references integrations (id),
  at             timestamptz(3) not null,
  request        text not null,
  header         text not null check (length(header) <= 1024),
  user_agent     text check (length(user_agent) <= 1024),
  body           text not null check (length(body) <= 16384),
  body_bytes     integer not null check (body_bytes >= 0),
  expected       text not null,
  mistake        text
);
create index refused_requests_of_integration on refused_requests (integration_id, id);
create index refused_requests_by_age on refused_requests (at);

-- The next two tables belong to the platform. They are here because they refer to merchants and
-- integrations.

-- How many rows a merchant's list has. A row's number in its list is dense (1, 2, 3 …) and is assigned
-- under this row's lock in the transaction that inserts it, so page N is a range of numbers: no OFFSET,
-- no count. last_created_at keeps created_at in the order of the numbers, even if the clocks of several
-- processes differ.
create table list_totals (
  merchant_id     uuid not null references merchants (id),
  list            text not null check (list in
                  ('checkouts', 'payment_links', 'refund_requests', 'payouts')),
  total           bigint not null check (total >= 0),
  last_created_at timestamptz(3) not null,
  primary key (merchant_id, list)
);

-- The first answer to a request that carried an Idempotency-Key, written in the transaction of its
-- effect. `answer` is what the use case returned, not the bytes: a payment URL is computed again.
create table idempotency_keys (
  integration_id uuid not null references integrations (id),
  key            text not null check (length(key) between 1 and 255),
  fingerprint    bytea not null check (length(fingerprint) = 32),
  status         integer not null check (status in (200, 422)),
  answer         jsonb not null,
  created_at     timestamptz(3) not null,
  primary key (integration_id, key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);
