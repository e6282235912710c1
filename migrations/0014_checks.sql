-- Checks of the books, and of the gateway's records against ours.

-- How far the continuous check of the books has come.
create table audit (
  only_row           boolean primary key default true check (only_row),
  after              uuid not null,
  leased_until       timestamptz(3),
  -- How many differences the current pass has found so far, when the last complete pass ended, and
  -- how many that pass found.
  differences        integer not null default 0,
  proved_at          timestamptz(3),
  proved_differences integer,
  -- After the checkouts, the pass checks whole merchants, in the order of their ids. Until then this
  -- is null.
  after_merchant     uuid
);
insert into audit (after) values ('00000000-0000-0000-0000-000000000000');

-- When the records of a gateway are next compared with ours, on the real clock.
create table reconciliation (
  gateway      text primary key,
  due_at       timestamptz(3) not null,
  leased_until timestamptz(3)
);

-- Whether this database knows everything that the gateways did (decision 0097).
create table gateway_heartbeat (
  only_row       boolean primary key default true check (only_row),
  -- This database's name at the gateways. Null until the service has started once.
  id             uuid,
  -- Since this time no money moves. It moves again once an operator has reconciled every gateway.
  stopped_at     timestamptz(3),
  stopped_reason text,
  -- The time at which changes were lost. No one can sign in until an operator has confirmed people
  -- and credentials.
  access_stopped_at timestamptz(3),
  -- The server on which sessions, links and tokens are accepted, and since when. On another server
  -- the database may be a backup. Null in a new database.
  access_server  text,
  access_at      timestamptz(3),
  check ((access_server is null) = (access_at is null)),
  check ((stopped_at is null) = (stopped_reason is null))
);
insert into gateway_heartbeat (only_row) values (true);

-- The heartbeat of this database at each gateway that it has used. A row is never deleted: it shows that
-- payments may be at a gateway whose settings are gone.
create table gateway_heartbeats (
  gateway      text primary key,
  -- The heartbeat is raised here first and then at the gateway. If the gateway's is higher, this
  -- database was restored.
  heartbeat    bigint not null default 0,
  heartbeat_at timestamptz(3),
  -- The server that wrote the last heartbeat: its system identifier, timeline and database.
  server       text,
  due_at       timestamptz(3)
);

-- One reading of the gateway's records. An interrupted run continues where it stopped. The reading
-- process holds an advisory lock.
create table reconciliation_runs (
  id           uuid primary key,
  gateway      text not null,
  from_at      timestamptz(3),
  to_at        timestamptz(3),
  -- Whether the run also records what the gateway did without this database knowing.
  records_lost boolean not null,
  -- The kind of records being read, and the last record that was compared. Null once all kinds are
  -- read.
  kind         text,
  after        text,
  checked      bigint not null default 0,
  began_at     timestamptz(3) not null,
  ended_at     timestamptz(3)
);

create table reconciliation_seen (
  run_id    uuid not null,
  reference text not null,
  primary key (run_id, reference)
);

create table reconciliation_differences (
  run_id      uuid not null,
  record_kind text not null,
  reference   text not null,
  kind        text not null,
  -- Null if the record belongs to no checkout of ours.
  of_merchant uuid,
  checkout_id text,
  -- The gateway's record, until the difference is recorded or reported.
  record      jsonb,
  created_at  timestamptz(3),
  -- The alert that reported it.
  alert_id    uuid,
  outcome     text check (outcome in ('recorded', 'blocked', 'reported')),
  primary key (run_id, record_kind, reference)
);
