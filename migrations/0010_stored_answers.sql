-- An attempt stores the beginning of the receiver's answer, and how long the answer was.

alter table callback_attempts add column response_body_bytes bigint;
alter table callback_attempts add column response_header_bytes integer;

-- Attempts expire. Their callback remembers how many did, so that the next attempt has the next
-- number and a missing attempt is still noticed.
alter table callbacks add column attempts_expired integer not null default 0;
create index callback_attempts_by_start on callback_attempts (started_at);
