-- Callbacks to merchants: delivered on a schedule, under a lease, with every attempt kept.

-- One per checkout that ended `successful` or `cancelled`, and one per event of a refund, a dispute
-- or a payout that an integration asked for, with the bytes that are sent. The fill factor leaves
-- space on the page for the next version of a row, so that an update of unindexed columns writes no
-- index.
create table callbacks (
  merchant_id      uuid not null,
  id               uuid not null,
  -- The event of a payout has no checkout.
  checkout_id      uuid,
  -- The integration of the checkout, of the refund or of the event's address. There is no foreign
  -- key: all callbacks of an integration would lock its row at once (decision 0012).
  integration_id   uuid not null,
  notify_url       text not null,
  payload          bytea not null,
  status           text not null check (status = any ('{pending,delivered,exhausted}')),
  created_at       timestamptz(3) not null,
  -- On the merchant's clock.
  due_at           timestamptz(3),
  -- The attempts of all runs, and those of the current one. A re-trigger begins a new run.
  attempts         integer not null default 0,
  run              integer not null default 1,
  run_attempts     integer not null default 0,
  -- How many attempts have expired, so that numbering continues and a missing attempt is still
  -- noticed.
  attempts_expired integer not null default 0,
  -- The receiver's host. A host gets only a limited number of callbacks at once.
  host             text not null,
  -- The address to which the answer to the first delivery sent the shopper.
  redirect_url     text,
  delivered_at     timestamptz(3),
  lease            uuid,
  leased_until     timestamptz(3),
  -- A copy of the checkout's value, for a v1 callback, so that its delivery needs no other row.
  sealed_verify    bytea,
  -- The last attempt that was sent and got no answer for a while. If its process dies, the callback
  -- is sent again after ten minutes, otherwise as soon as its lease has run out.
  sent_attempt     integer,
  -- Null for the contract's own callback, which reports how a checkout ended. The others have the
  -- object that changed, and count its changes for the integration.
  event            text check (event = any ('{refund.updated,dispute.updated,payout.updated}')),
  subject_id       uuid,
  sequence         integer check (sequence > 0),
  -- One index finds the callback of a checkout, keeps it unique and lists a merchant's callbacks by
  -- age. With three indexes, every sale would write all of them.
  listed_id        uuid not null,
  primary key (id, merchant_id),
  unique (merchant_id, listed_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((status = 'pending') = (due_at is not null)),
  check (listed_id is not distinct from case when event is null then checkout_id else id end),
  check ((event is null) = (subject_id is null)),
  check ((event is null) = (sequence is null)),
  check ((checkout_id is null) = (event is not distinct from 'payout.updated'))
) with (fillfactor = 50);
-- The events of an object in order, with unique numbers, and the events about a checkout.
create unique index callbacks_events on callbacks (merchant_id, subject_id, integration_id, sequence)
  where event is not null;
create index callbacks_events_of_checkout on callbacks (merchant_id, checkout_id)
  where event is not null;
-- This index only finds the merchants that have something due. The next one finds a merchant's
-- callbacks to one host, in order.
create index callbacks_due on callbacks (due_at) where due_at is not null;
create index callbacks_due_of_destination on callbacks (merchant_id, host, due_at)
  where due_at is not null;
-- An operator looks for exhausted callbacks. An index over all statuses would be written at every
-- step of every delivery.
create index callbacks_exhausted on callbacks (id) where status = 'exhausted';
create index callbacks_exhausted_of_merchant on callbacks (merchant_id, id)
  where status = 'exhausted';
create index callbacks_exhausted_of_host on callbacks (host, id) where status = 'exhausted';

-- One attempt: written before the socket opens and closed once, after. An attempt that a crash left
-- open stays `unknown` for ever. It is identified by its callback and number; its id tells a process
-- which attempts are its own. Attempts are made from the row of their callback by the statement that
-- writes them, and no callback is ever deleted, so there is no foreign key: it would lock and
-- rewrite the callback each time. Headers and timings are json: they keep the order of the wire, and
-- nothing queries their content.
create table callback_attempts (
  merchant_id           uuid not null,
  id                    uuid not null,
  callback_id           uuid not null,
  number                integer not null check (number > 0),
  run                   integer not null check (run > 0),
  trigger               text not null check (trigger = any ('{first,retry,operator}')),
  operator              text,
  started_at            timestamptz(3) not null,
  finished_at           timestamptz(3),
  outcome               text not null check (outcome = any ('{unknown,delivered,failed}')),
  reason                text,
  request_headers       json not null,
  address               text,
  tls_version           text,
  response_status       integer,
  response_headers      json,
  -- The beginning of the receiver's answer, and how long the answer was.
  response_body         bytea check (length(response_body) <= 65536),
  timings               json,
  response_body_bytes   bigint,
  response_header_bytes integer,
  primary key (merchant_id, callback_id, number),
  check ((outcome = 'unknown') = (finished_at is null))
) with (fillfactor = 50);
create index callback_attempts_by_start on callback_attempts (started_at);

-- How many deliveries in a row have failed at a merchant's receiver: an early warning before
-- callbacks are exhausted.
create table destinations (
  merchant_id uuid not null references merchants (id),
  host        text not null,
  failures    integer not null check (failures >= 0),
  alerted     boolean not null,
  primary key (merchant_id, host)
);

-- The results of a receiver on one day (UTC, on the real clock). `buckets` counts answers by
-- response time.
create table destination_days (
  merchant_id uuid not null references merchants (id),
  host        text not null,
  day         date not null,
  attempts    integer not null,
  delivered   integer not null,
  buckets     integer[] not null,
  primary key (merchant_id, host, day)
);

-- The last known state of a receiver.
create table destination_states (
  merchant_id     uuid not null references merchants (id),
  host            text not null,
  last_attempt_at timestamptz(3) not null,
  last_error      text,
  last_error_at   timestamptz(3),
  primary key (merchant_id, host)
);
