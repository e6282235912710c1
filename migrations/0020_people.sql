-- The people who use the console, how they prove who they are, and their sessions. Only hashes of
-- tokens and challenges are kept. Times are on the real clock.

create table people (
  id           uuid primary key,
  -- In lower case.
  email        text not null unique check (email = lower(email)),
  name         text not null,
  roles        text[] not null check (cardinality(roles) > 0),
  -- The merchants whose rows the person may see. Null means all.
  merchant_ids uuid[] check (cardinality(merchant_ids) > 0),
  -- The person's name at the OIDC issuer, once they have signed in there.
  oidc_subject text unique,
  created_at   timestamptz(3) not null,
  revoked_at   timestamptz(3)
);

-- One-time links: to register a passkey, or to sign in to a sandbox.
create table person_links (
  token_hash bytea primary key check (length(token_hash) = 32),
  person_id  uuid not null references people (id),
  purpose    text not null check (purpose in ('register', 'sign_in')),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  used_at    timestamptz(3)
);
create index person_links_by_end on person_links (expires_at);
create index person_links_of_person on person_links (person_id);

create table passkeys (
  id            uuid primary key,
  person_id     uuid not null references people (id),
  credential_id text not null unique,
  public_key    bytea not null,
  counter       bigint not null,
  transports    text[] not null,
  name          text not null,
  created_at    timestamptz(3) not null,
  used_at       timestamptz(3)
);
create index passkeys_of_person on passkeys (person_id);

create table console_sessions (
  id         uuid primary key,
  token_hash bytea not null unique check (length(token_hash) = 32),
  person_id  uuid not null references people (id),
  method     text not null check (method in ('passkey', 'oidc', 'sandbox_link')),
  address    text not null,
  user_agent text not null,
  created_at timestamptz(3) not null,
  seen_at    timestamptz(3) not null,
  -- The end at the latest. A session that is idle ends before.
  expires_at timestamptz(3) not null,
  -- When the person last proved their presence.
  proof_at   timestamptz(3),
  ended_at   timestamptz(3)
);
create index console_sessions_of_person on console_sessions (person_id, created_at);
create index console_sessions_by_end on console_sessions (expires_at);

-- A challenge is deleted by the request that answers it, so it is answered once.
create table console_challenges (
  challenge_hash bytea primary key check (length(challenge_hash) = 32),
  purpose        text not null check (purpose in ('register', 'sign_in', 'proof', 'oidc')),
  -- The person that a registration is for, and the session that a proof is for.
  person_id      uuid references people (id),
  session_id     uuid references console_sessions (id),
  -- What the OIDC issuer's answer is checked against, sealed.
  sealed_oidc    bytea,
  expires_at     timestamptz(3) not null
);
create index console_challenges_by_end on console_challenges (expires_at);

-- An action from the console names the person as they were then.
alter table operator_actions add column person_id uuid;
alter table operator_actions add column roles text[];
alter table operator_actions add column address text;
alter table operator_actions add column session_id uuid;
