-- Shoppers: managing the plan after paying, and erasing personal data in the end.

-- Records once for each checkout that its hosted page was opened. There is no foreign key, because
-- another transaction may hold the checkout's lock at that moment.
create table checkout_opens (
  merchant_id uuid not null,
  checkout_id uuid not null,
  id          uuid not null,
  at          timestamptz(3) not null,
  primary key (checkout_id, merchant_id)
);
create index checkout_opens_in_order on checkout_opens (id);

-- A shopper proves the e-mail address of a checkout with a one-time link, and then has a session.
-- Only hashes of tokens are stored. Times are on the merchant's clock.
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

-- The link in the last mail about a late payment. It works until it expires or the next mail
-- replaces it, and its session can only pay what is late.
create table late_links (
  merchant_id uuid not null,
  checkout_id uuid not null,
  token_hash  bytea not null check (length(token_hash) = 32),
  created_at  timestamptz(3) not null,
  expires_at  timestamptz(3) not null,
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index late_links_by_end on late_links (expires_at);

create table plan_sessions (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  session_hash bytea not null check (length(session_hash) = 32),
  -- A session with the scope 'late' may only pay what is late.
  scope        text not null default 'plan' check (scope in ('plan', 'late')),
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3) not null,
  primary key (checkout_id, session_hash, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index plan_sessions_by_end on plan_sessions (expires_at);

-- A shopper's questions about a plan, and people's answers. There is one conversation per plan.
-- Times are on the merchant's clock.
create table conversations (
  merchant_id uuid not null,
  checkout_id uuid not null,
  -- 'open' means that the shopper wrote last.
  status      text not null check (status in ('open', 'answered', 'solved')),
  moved_at    timestamptz(3) not null,
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index conversations_in_order on conversations (moved_at, checkout_id);
create index conversations_of_merchant on conversations (merchant_id, moved_at, checkout_id);
create index conversations_by_status on conversations (status, moved_at, checkout_id);
create index conversations_by_status_of_merchant
  on conversations (merchant_id, status, moved_at, checkout_id);

-- The texts of a conversation. The code only appends; erasing a shopper deletes them.
create table conversation_entries (
  merchant_id uuid not null,
  id          uuid not null,
  checkout_id uuid not null,
  author      text not null check (author in ('shopper', 'person')),
  person_id   uuid,
  name        text,
  text        text not null,
  at          timestamptz(3) not null,
  primary key (id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((author = 'shopper') = (name is null))
);
create index conversation_entries_in_order
  on conversation_entries (merchant_id, checkout_id, at, id);

-- The checkout up to which each merchant's personal data is older than the retention period. Without
-- a retention period there are no rows. A row falls due when the next checkout is old enough.
create table retention_dates (
  merchant_id  uuid not null primary key,
  -- The number of the last checkout that was old enough.
  number       bigint not null,
  due_at       timestamptz(3) not null,
  attempts        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3)
);
create index retention_dates_due on retention_dates (due_at);

-- Checkouts that are old enough and not erased yet. If the plan is not finished, the checkout is
-- checked again later.
create table erasures (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  due_at       timestamptz(3) not null,
  attempts        integer not null default 0,
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
  gateway      text not null default 'main',
  customer_ref text not null,
  due_at       timestamptz(3),
  deleted_at   timestamptz(3),
  attempts        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (checkout_id, customer_ref, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((due_at is null) = (deleted_at is not null))
);
create index deleted_customers_due on deleted_customers (due_at) where due_at is not null;
create index deleted_customers_due_of_merchant on deleted_customers (merchant_id, due_at)
  where due_at is not null;
