-- The foundation: who may call, what they created, what they were answered.
--
-- Every row of business belongs to a merchant and names it in its primary and unique keys.
-- Times are written by the service (never now()), with milliseconds, in UTC.

-- One row. A database belongs to one environment for ever: sandbox credentials never meet
-- production data, whatever a process was configured with.
create table installation (
  only_row    boolean primary key default true check (only_row),
  environment text not null check (environment in ('sandbox', 'production')),
  created_at  timestamptz(3) not null
);

create table territories (
  code      text primary key,
  currency  text not null check (currency ~ '^[A-Z]{3}$'),
  time_zone text not null,
  locale    text not null
);

insert into territories (code, currency, time_zone, locale)
values ('ZA', 'ZAR', 'Africa/Johannesburg', 'en-ZA');

create table merchants (
  id         uuid primary key,
  name       text not null check (length(name) between 1 and 255),
  territory  text not null references territories (code),
  rules      jsonb not null check (jsonb_typeof(rules) = 'array'),
  created_at timestamptz(3) not null
);

-- One set of credentials: of one merchant, or of an intermediary that manages several.
create table integrations (
  id                  uuid primary key,
  merchant_id         uuid references merchants (id),
  intermediary        boolean not null,
  refund_mode         text not null check (refund_mode in ('manual', 'auto')),
  signing_required_at timestamptz(3),
  revoked_at          timestamptz(3),
  created_at          timestamptz(3) not null,
  check (intermediary = (merchant_id is null))
);
create index integrations_of_merchant on integrations (merchant_id);

create table managed_merchants (
  integration_id uuid not null references integrations (id),
  merchant_id    uuid not null references merchants (id),
  added_at       timestamptz(3) not null,
  primary key (integration_id, merchant_id)
);

create table integration_limits (
  integration_id uuid not null references integrations (id),
  endpoint       text not null,
  max_requests   integer not null check (max_requests >= 0),
  window_seconds integer not null check (window_seconds between 1 and 86400),
  primary key (integration_id, endpoint)
);

-- What a request is recognised by. Only the hash is kept.
create table client_secrets (
  secret_hash    bytea primary key check (length(secret_hash) = 32),
  integration_id uuid not null references integrations (id),
  created_at     timestamptz(3) not null,
  expires_at     timestamptz(3)
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

-- How many rows a merchant's list has. A row's number in its list is dense (1, 2, 3 …) and is
-- assigned under this row's lock in the transaction that inserts it, so page N is a range of
-- numbers: no OFFSET, no count. last_created_at keeps created_at in the order of the numbers
-- whatever the clocks of several processes say.
create table list_totals (
  merchant_id     uuid not null references merchants (id),
  list            text not null check (list in ('checkouts', 'refund_requests')),
  total           bigint not null check (total >= 0),
  last_created_at timestamptz(3) not null,
  primary key (merchant_id, list)
);

-- The id comes first in the primary key: an intermediary reads by id without naming the merchant.
create table checkouts (
  merchant_id         uuid not null references merchants (id),
  id                  uuid not null,
  number              bigint not null,
  integration_id      uuid not null references integrations (id),
  status              text not null
                      check (status in ('received', 'successful', 'cancelled', 'invalid_payload')),
  amount              bigint not null check (amount > 0),
  currency            text not null,
  client_reference_id text not null,
  notify_url          text not null,
  success_url         text not null,
  cancel_url          text not null,
  customer            jsonb not null,
  line_items          jsonb not null,
  terms               integer[] not null check (cardinality(terms) > 0),
  number_of_payments  integer,
  signed              boolean not null,
  created_at          timestamptz(3) not null,
  expires_at          timestamptz(3) not null,
  completed_at        timestamptz(3),
  primary key (id, merchant_id),
  unique (merchant_id, number),
  check (number_of_payments is null or number_of_payments = any (terms)),
  check ((status in ('successful', 'cancelled')) = (completed_at is not null)),
  check ((status in ('successful', 'cancelled')) <= (number_of_payments is not null))
);

create table refund_requests (
  merchant_id    uuid not null,
  id             uuid not null,
  number         bigint not null,
  checkout_id    uuid not null,
  integration_id uuid not null references integrations (id),
  status         text not null check (status in ('requested', 'pending', 'complete', 'failed')),
  amount         bigint not null check (amount > 0),
  currency       text not null,
  signed         boolean not null,
  created_at     timestamptz(3) not null,
  primary key (id, merchant_id),
  unique (merchant_id, number),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index refund_requests_of_checkout on refund_requests (merchant_id, checkout_id);

-- The first answer to a request that carried an Idempotency-Key, written in the transaction of
-- its effect. `answer` is what the use case answered, not the bytes: a payment URL is made again.
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

-- Counts that may be forgotten: a crash of the database starts every window anew.
create unlogged table rate_limits (
  key       text primary key,
  count     integer not null,
  resets_at timestamptz(3) not null
);
create index rate_limits_by_end on rate_limits (resets_at);

-- Who changed what. Append-only.
create table operator_actions (
  id         uuid primary key,
  at         timestamptz(3) not null,
  operator   text not null,
  action     text not null,
  subject_id uuid,
  details    jsonb not null
);
create index operator_actions_of_subject on operator_actions (subject_id, at);

create table alerts (
  id             uuid primary key,
  at             timestamptz(3) not null,
  kind           text not null,
  integration_id uuid references integrations (id),
  merchant_id    uuid references merchants (id),
  detail         text not null
);
