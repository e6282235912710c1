-- The newest dispute of the gateway up to which every one was recorded. A poll that was interrupted,
-- or met a dispute that could not be recorded, reads on from the newest down to this one again.
create table dispute_poll (
  only_row boolean primary key default true check (only_row),
  reached  text
);
insert into dispute_poll default values;

-- After the checkouts the audit asks what can only be asked of whole merchants, in the order of their
-- ids. Null while it is at the checkouts.
alter table audit add column after_merchant uuid;
