-- The last attempt that was sent and had no answer for a while. If its process dies, the callback is
-- sent again after ten minutes, otherwise as soon as its lease has run out.
alter table callbacks add column sent_attempt integer;
