-- The shopper manages a plan after paying, and is erased in the end.

-- The shopper pays late, next or all payments, or replaces the card.
create table shopper_attempts (
  merchant_id          uuid not null,
  id                   uuid not null,
  checkout_id          uuid not null,
  number               integer not null check (number > 0),
  purpose              text not null check (purpose in ('pay', 'replace_card')),
  status               text not null check (status in
                         ('starting', 'challenged', 'charged', 'verified', 'declined', 'voiding',
                          'voided')),
  -- The numbers of the payments that it covers. An attempt that replaces the card covers none.
  instalments          integer[] not null,
  amount               bigint not null check (amount >= 0),
  currency             text not null,
  -- The token of the card that the shopper entered, encrypted until the outcome is known.
  sealed_card_token    bytea,
  -- Whether the stored card is charged. Its reference is in card_ref from the beginning.
  uses_stored_card     boolean not null,
  -- Whether the card replaces the stored one once the attempt has succeeded.
  keeps_card           boolean not null,
  consent              jsonb,
  customer_ref         text not null,
  -- The gateway's payment, or its verification of the card.
  payment_ref          text,
  challenge_url        text,
  card_ref             text,
  card_brand           text,
  card_last4           text,
  card_expires         text,
  -- How the shopper's bank authenticated the payment (3-D Secure), if it was asked.
  authentication       jsonb,
  decline_reason       text,
  may_retry            boolean,
  -- The codes of the gateway and of the card network.
  decline_code         text,
  network_decline_code text,
  created_at           timestamptz(3) not null,
  -- When the request was last sent, on the real clock.
  asked_at             timestamptz(3),
  settled_at           timestamptz(3),
  due_at               timestamptz(3),
  tries                integer not null default 0,
  lease                uuid,
  leased_until         timestamptz(3),
  primary key (id, merchant_id),
  unique (merchant_id, checkout_id, number),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((status in ('starting', 'challenged', 'voiding')) = (due_at is not null)),
  check ((due_at is null) = (settled_at is not null)),
  check ((purpose = 'pay') = (cardinality(instalments) > 0)),
  check ((purpose = 'pay') = (amount > 0)),
  check (keeps_card = (consent is not null)),
  check (not (keeps_card and uses_stored_card)),
  check ((purpose = 'replace_card') <= keeps_card)
);
-- One attempt at a time: until its outcome is known, it may have charged the card.
create unique index shopper_attempts_in_flight on shopper_attempts (merchant_id, checkout_id)
  where due_at is not null;
create index shopper_attempts_due on shopper_attempts (due_at) where due_at is not null;
create index shopper_attempts_due_of_merchant on shopper_attempts (merchant_id, due_at)
  where due_at is not null;
create index shopper_attempts_of_checkout on shopper_attempts (checkout_id);
create index shopper_attempts_by_last4
  on shopper_attempts (card_last4, merchant_id, checkout_id desc) where card_last4 is not null;
create index shopper_attempts_by_payment_ref
  on shopper_attempts (payment_ref) where payment_ref is not null;

-- A shopper proves the e-mail address of a checkout by a one-time link, and then has a session. Only
-- hashes of tokens are kept. Times are on the merchant's clock.
create table plan_links (
  merchant_id uuid not null,
  checkout_id uuid not null,
  token_hash  bytea not null check (length(token_hash) = 32),
  created_at  timestamptz(3) not null,
  expires_at  timestamptz(3) not null,
  used_at     timestamptz(3),
  primary key (checkout_id, token_hash, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index plan_links_by_end on plan_links (expires_at);

create table plan_sessions (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  session_hash bytea not null check (length(session_hash) = 32),
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3) not null,
  primary key (checkout_id, session_hash, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index plan_sessions_by_end on plan_sessions (expires_at);

-- Up to which checkout each merchant's personal data is older than the time of retention. There are no
-- rows while there is no time of retention. A row falls due when the next checkout is old enough.
create table retention_dates (
  merchant_id  uuid not null primary key,
  -- The number of the last checkout that was old enough.
  number       bigint not null,
  due_at       timestamptz(3) not null,
  tries        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3)
);
create index retention_dates_due on retention_dates (due_at);

-- Checkouts that are old enough and not erased yet. One whose plan is not finished is looked at again.
create table erasures (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  due_at       timestamptz(3) not null,
  tries        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index erasures_due on erasures (due_at);
create index erasures_due_of_merchant on erasures (merchant_id, due_at);

-- The gateway's records of shoppers who were erased here, until the gateway has deleted them too.
create table deleted_customers (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  customer_ref text not null,
  due_at       timestamptz(3),
  deleted_at   timestamptz(3),
  tries        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (checkout_id, customer_ref, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((due_at is null) = (deleted_at is not null))
);
create index deleted_customers_due on deleted_customers (due_at) where due_at is not null;
create index deleted_customers_due_of_merchant on deleted_customers (merchant_id, due_at)
  where due_at is not null;
