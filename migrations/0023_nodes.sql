-- Each process of the service announces itself here (decision 0090). The rows may be lost: a process
-- writes its own again within seconds.
create unlogged table nodes (
  id uuid primary key,
  host text not null,
  process_id integer not null,
  program_version integer not null,
  started_at timestamptz(3) not null,
  seen_at timestamptz(3) not null
);
