-- The legacy v1 plugin API: its credentials, its tokens and its use.

-- The v1 credentials of an integration, in addition to its v2 credentials. Only the hash of the
-- secret is stored. Withdrawn credentials stay withdrawn: enabling v1 again issues new ones.
create table legacy_credentials (
  client_id      uuid primary key,
  integration_id uuid not null references integrations (id),
  secret_hash    bytea not null check (length(secret_hash) = 32),
  created_at     timestamptz(3) not null,
  disabled_at    timestamptz(3)
);
create unique index legacy_credentials_in_force on legacy_credentials (integration_id)
  where disabled_at is null;
create index legacy_credentials_of_integration on legacy_credentials (integration_id);

-- A token that a login issued: found by its hash, with its merchant and the credentials of the
-- login.
create table legacy_tokens (
  token_hash  bytea not null check (length(token_hash) = 32),
  merchant_id uuid not null references merchants (id),
  client_id   uuid not null references legacy_credentials (client_id),
  created_at  timestamptz(3) not null,
  expires_at  timestamptz(3) not null,
  primary key (token_hash, merchant_id)
);
create index legacy_tokens_by_end on legacy_tokens (expires_at);

-- How much v1 is still used: one row per integration and day (UTC), which every request adds to.
create table legacy_usage (
  integration_id uuid not null references integrations (id),
  day            date not null,
  logins         integer not null default 0 check (logins >= 0),
  checkouts      integer not null default 0 check (checkouts >= 0),
  primary key (integration_id, day)
);
