-- A shopper proves the e-mail address of a checkout by a one-time link, and acts in a session.
-- Only hashes of tokens are kept. Times are on the merchant's clock.

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
