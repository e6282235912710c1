-- Callbacks are claimed destination by destination, and their rows change several times in a short
-- life: what they need to be quick about it.

-- One merchant's callbacks to one host, in their order. The index over all merchants answers only
-- who has something due.
drop index callbacks_due_of_merchant;
create index callbacks_due_of_destination on callbacks (merchant_id, host, due_at)
  where due_at is not null;

-- An operator looks for what was given up; what waits is found by its due time. An index over all
-- statuses would be written at every step of every delivery.
drop index callbacks_by_status;
create index callbacks_exhausted on callbacks (merchant_id, created_at) where status = 'exhausted';

-- Room on the page for the next version of a row, so that a step that touches no index writes none.
alter table callbacks set (fillfactor = 50);
alter table callback_attempts set (fillfactor = 50);
