-- What a failed refund gave to the card and could not put back is watched like a complete one: the
-- card network may return that, too.

alter table refund_requests
  drop constraint refund_requests_check4,
  add check ((status = 'failed' and kept = 0) <= (due_at is null));

update refund_requests r
set due_at = (
  select max(p.settled_at) from refund_parts p
  where p.refund_id = r.id and p.merchant_id = r.merchant_id
    and p.kind = 'card' and p.status = 'done')
where r.status = 'failed' and r.kept > 0;
