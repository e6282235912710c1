-- The indexes by shopper leave out checkouts that have not ended: writing them with every checkout
-- cost a create more than it may. A search looks through the newest open checkouts instead.

drop index checkouts_by_email;
create index checkouts_by_email on checkouts
  (lower(customer ->> 'email'), merchant_id, number desc) where status <> 'received';
drop index checkouts_by_name;
create index checkouts_by_name on checkouts
  (lower(customer ->> 'last_name'), lower(customer ->> 'first_name'), merchant_id)
  where status <> 'received' and lower(customer ->> 'last_name') is not null;
