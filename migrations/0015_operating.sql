-- Operating: the people who use the console, the sums for its charts, and bulk actions.

-- Only hashes of tokens and challenges are stored. Times of people, sessions and links are on the
-- real clock.
create table people (
  id           uuid primary key,
  -- A to Z are in lower case. Other letters stay as they are, whatever the database's locale.
  -- Sorted in byte order, so that the beginning of an address is a range of the index.
  email        text collate "C" not null check (email = lower(email)),
  name         text not null,
  roles        text[] not null check (cardinality(roles) > 0),
  -- The merchants whose rows the person may see. Null means all.
  merchant_ids uuid[] check (cardinality(merchant_ids) > 0),
  -- The person's name at the OIDC issuer, once they have signed in there.
  oidc_subject text unique,
  created_at   timestamptz(3) not null,
  -- When they could first sign in, with a passkey or an account at the issuer. Never cleared.
  registered_at timestamptz(3),
  -- When their access was given or last grew. They can be the second approver only some time after
  -- that.
  access_since timestamptz(3) not null,
  -- The time since which they have had access from a merchant's administrator, or by a link that
  -- the administrator who released it saw, and who that was. They can be the second approver only
  -- once another administrator of all merchants has confirmed them.
  unconfirmed_since timestamptz(3),
  unconfirmed_by uuid,
  revoked_at   timestamptz(3),
  -- A person may have several rows, each with the access that other merchants gave. The first row has
  -- their passkeys and their account at the issuer; the others name it here.
  identity_id uuid references people (id),
  check ((unconfirmed_since is null) = (unconfirmed_by is null))
);
create unique index people_once_by_email on people (email) where identity_id is null;
create index people_by_email on people (email, id);
create index people_by_name on people ((lower(name) collate "C"), id);
create index people_by_identity on people (identity_id) where identity_id is not null;

-- The people of one merchant, for its administrators.
create index people_by_merchant on people using gin (merchant_ids);

-- A person downloads one file at a time, whichever process writes it. The claim of a process that
-- died ends with its lease.
create table downloads (
  person_id    uuid primary key references people (id),
  lease        uuid not null,
  leased_until timestamptz(3) not null
);

-- One-time links: to register a passkey, or to sign in to a sandbox. A notice is the invitation of one
-- of the service's staff by a merchant, and opens nothing.
create table person_links (
  token_hash bytea primary key check (length(token_hash) = 32),
  person_id  uuid not null references people (id),
  purpose    text not null check (purpose in ('register', 'sign_in', 'notice')),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  -- The operator who created it. Another one releases it where a second person must agree.
  made_by           text not null,
  made_by_person_id uuid,
  -- Whether the service's staff made it. Such a link replaces the sign-in methods of all accesses
  -- of the person.
  by_staff          boolean not null,
  -- The name, roles and merchants that the person gets when a second person releases it.
  access     jsonb,
  -- The link does not work before this time.
  released_at timestamptz(3),
  used_at    timestamptz(3)
);
create index person_links_by_end on person_links (expires_at);
create index person_links_of_person on person_links (person_id);

-- Mail to people: about invitations, every change of how they sign in, and each step of their
-- merchant's bank account. An outbox, written in the transaction that causes the mail.
create table person_mails (
  id           uuid primary key,
  person_id    uuid not null references people (id),
  kind         text not null check (kind in
                 ('invitation', 'invitation_requested', 'invited_again', 'registered',
                  'passkey_added', 'passkey_removed', 'issuer_tied', 'access_widened', 'revoked',
                  'confirmed', 'invited_elsewhere', 'bank_proposed', 'bank_confirmed', 'callbacks_failing',
                  'dispute_opened', 'key_ends', 'payout_paid', 'payout_returned', 'link_paid',
                  'orders_week', 'orders_month', 'refunds_week', 'refunds_month')),
  -- Facts that the mail states and that are not in the person's row.
  facts        jsonb not null,
  -- The token of an invitation, encrypted until the mail is sent, then null.
  sealed_token bytea,
  status       text not null check (status in ('pending', 'sent', 'refused', 'skipped')),
  created_at   timestamptz(3) not null,
  -- A claim moves this time to the end of the lease.
  due_at       timestamptz(3),
  settled_at   timestamptz(3),
  attempts     integer not null default 0,
  -- The last answer of the mail server.
  response     text,
  -- The merchant's event that the mail is about. A person gets one mail about it.
  event        text,
  check ((status = 'pending') = (due_at is not null)),
  check ((status = 'pending') = (settled_at is null)),
  check (sealed_token is null or status = 'pending')
);
create index person_mails_due on person_mails (due_at, id) where due_at is not null;
create unique index person_mails_once on person_mails (person_id, event) where event is not null;
create index person_mails_by_end on person_mails (settled_at) where settled_at is not null;

-- Whether a person gets mail about a kind of event of a merchant. Without a row, its administrators do.
create table alert_mails (
  merchant_id uuid not null references merchants (id),
  person_id   uuid not null references people (id),
  kind        text not null check (kind in
                ('callbacks_failing', 'dispute_opened', 'key_ends', 'payout_paid', 'payout_returned',
                 'link_paid', 'orders_week', 'orders_month', 'refunds_week', 'refunds_month')),
  is_wanted   boolean not null,
  -- The day on which an export falls due, on the merchant's clock.
  due_on      date,
  primary key (merchant_id, person_id, kind)
);
create index alert_mails_due on alert_mails (due_on) where due_on is not null;

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
  -- The row of the person that has their passkeys.
  person_id  uuid not null references people (id),
  -- The row of the person whose roles and merchants the session has.
  access_id  uuid not null references people (id),
  method     text not null check (method in ('passkey', 'oidc', 'sandbox_link')),
  address    text not null,
  user_agent text not null,
  created_at timestamptz(3) not null,
  seen_at    timestamptz(3) not null,
  -- When it ends at the latest. An idle session ends earlier.
  expires_at timestamptz(3) not null,
  -- When the person last re-authenticated.
  proof_at   timestamptz(3),
  -- The passkey of the last sign-in or re-authentication.
  passkey_id uuid,
  ended_at   timestamptz(3)
);
create index console_sessions_of_person on console_sessions (person_id, created_at);
create index console_sessions_of_access on console_sessions (access_id, created_at);
create index console_sessions_by_end on console_sessions (expires_at);

-- The request that answers a challenge deletes it, so it is answered only once.
create table console_challenges (
  challenge_hash bytea primary key check (length(challenge_hash) = 32),
  purpose        text not null check (purpose in ('register', 'sign_in', 'proof', 'oidc')),
  -- The person that a registration is for, and the session that a re-authentication is for.
  person_id      uuid references people (id),
  session_id     uuid references console_sessions (id),
  -- The data that the OIDC issuer's answer is checked against, sealed.
  sealed_oidc    bytea,
  expires_at     timestamptz(3) not null
);
create index console_challenges_by_end on console_challenges (expires_at);

-- The charts read daily sums. Due work adds the rows written after its position, in the order of
-- ids, which ascend with time. A row of a stream is counted once, because the position moves in the
-- same transaction.
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
  -- Refunds that went to cards. `refunded` also includes what was taken from payments before they
  -- were collected.
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

-- The amounts still to be collected, by due day.
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

-- The total overdue amount. Due work adds up the rows of the index of overdue payments.
create table merchant_overdue (
  merchant_id uuid not null references merchants (id),
  amount      bigint not null,
  as_of       timestamptz(3) not null,
  primary key (merchant_id)
);

-- Many actions of a person in one. Due work continues it after the person has signed out, and after
-- a restart.
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
  -- How far it has come: the number or the id of the last finished item.
  position     text,
  due_at       timestamptz(3),
  lease        uuid,
  leased_until timestamptz(3)
);
create index bulk_actions_due on bulk_actions (due_at, id) where due_at is not null;
create index bulk_actions_of_access on bulk_actions ((actor ->> 'access_id'), id);
