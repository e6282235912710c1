-- Operating: the people who use the console, what it sums up, and bulk actions.

-- Only hashes of tokens and challenges are kept. Times of people, sessions and links are on the real
-- clock.
create table people (
  id           uuid primary key,
  -- A to Z in lower case. Other letters stay as they are, whatever the database's locale.
  email        text not null check (email = lower(email collate "C")),
  name         text not null,
  roles        text[] not null check (cardinality(roles) > 0),
  -- The merchants whose rows the person may see. Null means all.
  merchant_ids uuid[] check (cardinality(merchant_ids) > 0),
  -- The person's name at the OIDC issuer, once they have signed in there.
  oidc_subject text unique,
  created_at   timestamptz(3) not null,
  -- When they first had a way in: a passkey, or an account at the issuer. Never cleared.
  registered_at timestamptz(3),
  -- When their access was given or last grew. Where two people are needed they count only later.
  access_since timestamptz(3) not null,
  -- Since when, and by whose invitation or change, they have access that a merchant's administrator
  -- gave. Where two people are needed they count once an administrator of all merchants confirms them.
  unconfirmed_since timestamptz(3),
  unconfirmed_by uuid,
  revoked_at   timestamptz(3),
  -- The person who has this address already, whom the inviter may not see. This row has no way in. It
  -- shows to the inviter's merchant what an invitation of a new person would show.
  duplicate_of uuid references people (id),
  check ((unconfirmed_since is null) = (unconfirmed_by is null))
);
create unique index people_once_by_email on people (email) where duplicate_of is null;
create index people_by_email on people (email, id);
create index people_duplicates on people (duplicate_of) where duplicate_of is not null;

-- The people of one merchant, for its administrators.
create index people_by_merchant on people using gin (merchant_ids);

-- A person downloads one file at a time, whichever process writes it. A process that died gives its
-- place back when the lease ends.
create table downloads (
  person_id    uuid primary key references people (id),
  lease        uuid not null,
  leased_until timestamptz(3) not null
);

-- One-time links: to register a passkey, or to sign in to a sandbox.
create table person_links (
  token_hash bytea primary key check (length(token_hash) = 32),
  person_id  uuid not null references people (id),
  purpose    text not null check (purpose in ('register', 'sign_in')),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  -- The operator who made it. Another one releases it where a second person must agree.
  made_by           text not null,
  made_by_person_id uuid,
  -- The name, roles and merchants that the person gets when a second person releases it.
  access     jsonb,
  -- It does not work before.
  released_at timestamptz(3),
  used_at    timestamptz(3)
);
create index person_links_by_end on person_links (expires_at);
create index person_links_of_person on person_links (person_id);

-- Mail to people: invitations, every change of their ways in, and each step of their merchant's bank
-- account. An outbox, written in the transaction
-- that causes the mail.
create table person_mails (
  id           uuid primary key,
  person_id    uuid not null references people (id),
  kind         text not null check (kind in
                 ('invitation', 'invitation_requested', 'invited_again', 'registered',
                  'passkey_added', 'passkey_removed', 'issuer_tied', 'access_widened', 'revoked',
                  'confirmed', 'invited_elsewhere', 'bank_proposed', 'bank_confirmed')),
  -- Facts that the mail states and the person's row does not have.
  facts        jsonb not null,
  -- The token of an invitation, encrypted until the mail is sent, then null.
  sealed_token bytea,
  status       text not null check (status in ('pending', 'sent', 'refused', 'skipped')),
  created_at   timestamptz(3) not null,
  -- A claim moves it to the end of the lease.
  due_at       timestamptz(3),
  settled_at   timestamptz(3),
  attempts     integer not null default 0,
  -- The last answer of the mail server.
  response     text,
  check ((status = 'pending') = (due_at is not null)),
  check ((status = 'pending') = (settled_at is null)),
  check (sealed_token is null or status = 'pending')
);
create index person_mails_due on person_mails (due_at, id) where due_at is not null;
create index person_mails_by_end on person_mails (settled_at) where settled_at is not null;

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
  -- The passkey of the last sign-in or proof.
  passkey_id uuid,
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
  -- The OIDC issuer's answer is checked against it. Sealed.
  sealed_oidc    bytea,
  expires_at     timestamptz(3) not null
);
create index console_challenges_by_end on console_challenges (expires_at);

-- The charts read sums by day. Due work adds to them what was written since its position, in the order
-- of ids, which ascend with time. A row of a stream is counted once: the position moves in the same
-- transaction.
create table rollups (
  stream text primary key,
  after  uuid not null,
  as_of  timestamptz(3)
);
insert into rollups (stream, after)
values ('checkouts', '00000000-0000-0000-0000-000000000000'),
  ('opens', '00000000-0000-0000-0000-000000000000'),
  ('attempts', '00000000-0000-0000-0000-000000000000'),
  ('postings', '00000000-0000-0000-0000-000000000000'),
  ('entries', '00000000-0000-0000-0000-000000000000');

-- One row per merchant and local day.
create table merchant_days (
  merchant_id uuid not null references merchants (id),
  day         date not null,
  created     integer not null default 0,
  opened      integer not null default 0,
  tried       integer not null default 0,
  paid        integer not null default 0,
  approved    integer not null default 0,
  declined    integer not null default 0,
  sold        bigint not null default 0,
  collected   bigint not null default 0,
  refunded    bigint not null default 0,
  -- Refunds that went to cards. `refunded` also has what was taken from payments before.
  card_refunds bigint not null default 0,
  disputed    bigint not null default 0,
  fees        bigint not null default 0,
  vat         bigint not null default 0,
  paid_out    bigint not null default 0,
  primary key (merchant_id, day)
);
create index merchant_days_by_day on merchant_days (day);

create table merchant_declines (
  merchant_id uuid not null references merchants (id),
  day         date not null,
  reason      text not null,
  count       integer not null,
  primary key (merchant_id, day, reason)
);
create index merchant_declines_by_day on merchant_declines (day);

-- The amounts still to be collected, by the day on which they are due.
create table merchant_dues (
  merchant_id uuid not null references merchants (id),
  day         date not null,
  amount      bigint not null,
  primary key (merchant_id, day)
);
create index merchant_dues_by_day on merchant_dues (day);

-- The sums of a merchant's settlement entries, by kind, from the first to the stream's position.
create table merchant_entries (
  merchant_id uuid not null references merchants (id),
  kind        text not null,
  gross       bigint not null,
  fee         bigint not null,
  vat         bigint not null,
  net         bigint not null,
  primary key (merchant_id, kind)
);

-- The overdue amount, in all. Due work adds up the rows of the index of overdue payments.
create table merchant_overdue (
  merchant_id uuid not null references merchants (id),
  amount      bigint not null,
  as_of       timestamptz(3) not null,
  primary key (merchant_id)
);

-- Several actions of a person as one. Due work continues it when the person has left, and after a
-- restart.
create table bulk_actions (
  id           uuid primary key,
  kind         text not null,
  actor        jsonb not null,
  wanted       jsonb not null,
  created_at   timestamptz(3) not null,
  finished_at  timestamptz(3),
  total        integer,
  done         integer not null default 0,
  failed       integer not null default 0,
  problems     jsonb not null default '[]',
  -- Why it ended before its last item.
  stopped      text,
  -- How far it has come: the number or the id of the last item that was done.
  position     text,
  due_at       timestamptz(3),
  lease        uuid,
  leased_until timestamptz(3)
);
create index bulk_actions_due on bulk_actions (due_at, id) where due_at is not null;
create index bulk_actions_of_person on bulk_actions ((actor ->> 'person_id'), id);
