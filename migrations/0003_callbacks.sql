-- The callback is delivered: on a schedule, under a lease, with every attempt kept.

alter table callbacks
  -- When the next attempt is due, on the merchant's clock; null when there will be none by itself.
  add column due_at       timestamptz(3),
  -- Attempts of all runs, and of the current one: a re-trigger begins a new run.
  add column attempts     integer not null default 0,
  add column run          integer not null default 1,
  add column run_attempts integer not null default 0,
  -- Whose patience is at stake: so many at once go to one host and no more.
  add column host         text not null generated always as
    (lower(coalesce(substring(notify_url from '^[^:]+://([^/?#]*)'), ''))) stored,
  -- Where the first delivery's answer sent the shopper.
  add column redirect_url text,
  add column delivered_at timestamptz(3),
  -- Who is delivering right now; on the real clock.
  add column lease        uuid,
  add column leased_until timestamptz(3);

update callbacks set due_at = created_at where status = 'pending';
alter table callbacks add check ((status = 'pending') = (due_at is not null));
create index callbacks_due on callbacks (due_at) where due_at is not null;
create index callbacks_due_of_merchant on callbacks (merchant_id, due_at) where due_at is not null;
create index callbacks_by_status on callbacks (merchant_id, status, created_at);

-- One try: written before the socket opens and closed once, after. What a crash left behind stays
-- `unknown` for ever.
create table callback_attempts (
  merchant_id      uuid not null,
  id               uuid not null,
  callback_id      uuid not null,
  number           integer not null check (number > 0),
  run              integer not null check (run > 0),
  trigger          text not null check (trigger in ('first', 'retry', 'operator')),
  operator         text,
  started_at       timestamptz(3) not null,
  finished_at      timestamptz(3),
  outcome          text not null check (outcome in ('unknown', 'delivered', 'failed')),
  reason           text,
  request_headers  jsonb not null,
  address          text,
  tls_version      text,
  response_status  integer,
  response_headers jsonb,
  response_body    bytea check (length(response_body) <= 65536),
  timings          jsonb,
  primary key (id, merchant_id),
  unique (merchant_id, callback_id, number),
  foreign key (callback_id, merchant_id) references callbacks (id, merchant_id),
  check ((outcome = 'unknown') = (finished_at is null))
);

-- How a merchant's receiver has been doing: an early warning before callbacks are given up.
create table destinations (
  merchant_id uuid not null references merchants (id),
  host        text not null,
  failures    integer not null check (failures >= 0),
  alerted     boolean not null,
  primary key (merchant_id, host)
);

-- Alerts are also posted to the operator's own address, when there is one.
alter table alerts
  add column posted_at timestamptz(3),
  add column tries     integer not null default 0,
  add column due_at    timestamptz(3);
create index alerts_due on alerts (due_at) where due_at is not null;
create index alerts_by_time on alerts (at);
