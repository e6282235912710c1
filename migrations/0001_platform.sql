-- The platform: which environment the database belongs to, where merchants trade, and which
-- processes run.
--
-- Every business row belongs to a merchant and names it in its primary and unique keys. Times are
-- written by the service (never now()), with milliseconds, in UTC. A `due_at` says when a process
-- must look at a row again. A `lease` says which process looks at it now; it lasts until
-- `leased_until`, on the real clock, and an outcome is recorded only under its own lease.

-- This table has one row. A database belongs to one environment for ever: sandbox credentials never
-- meet production data, however a process is configured.
create table installation (
  only_row    boolean primary key default true check (only_row),
  environment text not null check (environment in ('sandbox', 'production')),
  created_at  timestamptz(3) not null,
  -- Sealed under the master key of the first process that used this database. Until there are
  -- signing keys, the next process checks against it whether it has the same master key.
  key_check   bytea
);

create table territories (
  code        text primary key,
  currency    text not null check (currency ~ '^[A-Z]{3}$'),
  time_zone   text not null,
  locale      text not null,
  -- The smallest payment that the card gateway takes in the territory's currency, in cents.
  payment_min integer not null default 1 check (payment_min > 0)
);

-- Ten rand is a little more than the half dollar that Stripe requires.
insert into territories (code, currency, time_zone, locale, payment_min)
values ('ZA', 'ZAR', 'Africa/Johannesburg', 'en-ZA', 1000);

-- Each process of the service announces itself here (decision 0032). The rows may be lost: a process
-- writes its own again within seconds.
create unlogged table nodes (
  id              uuid primary key,
  host            text not null,
  process_id      integer not null,
  program_version integer not null,
  started_at      timestamptz(3) not null,
  seen_at         timestamptz(3) not null
);

-- Counts that may be lost: after a crash of the database every window starts again.
create unlogged table rate_limits (
  key       text primary key,
  count     integer not null,
  resets_at timestamptz(3) not null
);
create index rate_limits_by_end on rate_limits (resets_at);
