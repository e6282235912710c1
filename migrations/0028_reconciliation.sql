-- When the records of the gateway are compared with ours next, on the real clock.
create table reconciliation (
  only_row     boolean primary key default true check (only_row),
  -- Null until the service has started once.
  due_at       timestamptz(3),
  leased_until timestamptz(3)
);
insert into reconciliation (only_row) values (true);
