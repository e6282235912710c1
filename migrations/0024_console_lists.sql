-- What the operators' console lists, sums up and writes.

-- A refund above this many cents needs two people. Null: one is enough for any refund.
alter table merchants add column four_eyes_above bigint;

-- Who asked for a refund in the console, and why; null if the merchant asked by the API. Above the
-- merchant's threshold the first approval is noted here, and the second lets the refund begin.
alter table refund_requests add column requested_by uuid;
alter table refund_requests add column requested_by_name text;
alter table refund_requests add column request_reason text;
alter table refund_requests add column first_approved_by uuid;
alter table refund_requests add column first_approved_by_name text;
alter table refund_requests add column first_approved_at timestamptz(3);

-- Lists. A checkout is written as `received`, so creating one writes none of these.
create index checkouts_by_status on checkouts (status, id, merchant_id)
  where status <> 'received';
create index checkouts_by_status_of_merchant on checkouts (merchant_id, status, number)
  where status <> 'received';
-- Refunds that wait for a person.
create index refund_requests_to_review on refund_requests (created_at, id)
  where status = 'requested' and approved_at is null;
create index refund_requests_to_review_of_merchant on refund_requests (merchant_id, created_at, id)
  where status = 'requested' and approved_at is null;
create index refund_requests_to_begin on refund_requests (created_at, id)
  where status = 'requested' and approved_at is not null;
create index refund_requests_to_begin_of_merchant on refund_requests (merchant_id, created_at, id)
  where status = 'requested' and approved_at is not null;
create index callbacks_exhausted_of_host on callbacks (host, id) where status = 'exhausted';
create index alerts_closed on alerts (at, id) where closed_at is not null;
create index alerts_of_merchant on alerts (merchant_id, at, id) where merchant_id is not null;
-- The audit, and what one person did.
create index operator_actions_by_time on operator_actions (at, id);
create index operator_actions_of_person on operator_actions (person_id, at, id)
  where person_id is not null;
create index merchants_by_age on merchants (created_at, id);
create index integrations_by_age on integrations (created_at, id);

-- What a person wrote beside a checkout. Append-only in the code; erasing a shopper empties it.
create table notes (
  merchant_id uuid not null,
  id          uuid not null,
  checkout_id uuid not null,
  at          timestamptz(3) not null,
  person_id   uuid,
  name        text not null,
  text        text not null,
  primary key (checkout_id, id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);

-- That the hosted page of a checkout was opened, once for each. No foreign key: the page is opened
-- while another transaction may hold the checkout's lock.
create table checkout_opens (
  merchant_id uuid not null,
  checkout_id uuid not null,
  id          uuid not null,
  at          timestamptz(3) not null,
  primary key (checkout_id, merchant_id)
);
create index checkout_opens_in_order on checkout_opens (id);

-- The charts read sums by day. Due work adds to them what was written since its mark, in the order
-- of ids, which ascend with time. A row of a stream is counted once: the mark moves in the same
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
  ('postings', '00000000-0000-0000-0000-000000000000');
-- The id of an attempt is derived from its checkout, so this one ascends with time instead. Null for
-- attempts from before.
alter table payment_attempts add column written_id uuid;
create index payment_attempts_in_order on payment_attempts (written_id)
  where written_id is not null;
-- The movements that the charts show, in the order of their ids.
create index postings_in_order on postings (id)
  where kind in ('sold', 'captured', 'collected', 'cancelled', 'restored', 'refunded', 'returned');

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

-- What is still to be collected, by the day on which it is due.
create table merchant_dues (
  merchant_id uuid not null references merchants (id),
  day         date not null,
  amount      bigint not null,
  primary key (merchant_id, day)
);
create index merchant_dues_by_day on merchant_dues (day);

-- What is overdue, in all. Due work adds up the rows of the index of overdue payments.
create table merchant_overdue (
  merchant_id uuid not null references merchants (id),
  amount      bigint not null,
  as_of       timestamptz(3) not null,
  primary key (merchant_id)
);

-- How a receiver did on one day (UTC, on the real clock). `buckets` counts answers by how long they
-- took.
create table destination_days (
  merchant_id uuid not null references merchants (id),
  host        text not null,
  day         date not null,
  attempts    integer not null,
  delivered   integer not null,
  buckets     integer[] not null,
  primary key (merchant_id, host, day)
);
-- The last that is known of a receiver.
create table destination_states (
  merchant_id     uuid not null references merchants (id),
  host            text not null,
  last_attempt_at timestamptz(3) not null,
  last_error      text,
  last_error_at   timestamptz(3),
  primary key (merchant_id, host)
);

-- Several acts of a person as one. Due work goes on with it when the person has left, and after a
-- restart.
create table long_acts (
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
  -- How far it has come: the number or the id of the last item that was done.
  position     text,
  due_at       timestamptz(3),
  lease        uuid,
  leased_until timestamptz(3)
);
create index long_acts_due on long_acts (due_at, id) where due_at is not null;
create index long_acts_of_person on long_acts ((actor ->> 'person_id'), id);

-- The continuous check of the books: when the pass in progress began, what it has found so far, and
-- when the last whole pass ended with what.
alter table audit add column began_at timestamptz(3);
alter table audit add column differences integer not null default 0;
alter table audit add column proved_at timestamptz(3);
alter table audit add column proved_differences integer;
