-- What operators search and list by. Each search is an equality on the first column of an index and
-- each list is a range of one, so that both take the same time however many rows there are.

-- A checkout by what a merchant or a shopper knows of it. These are written with every checkout, so
-- there are no more of them.
-- The one by reference also finds a merchant's own, in the other order of its columns.
drop index checkouts_by_reference;
create index checkouts_by_reference on checkouts (client_reference_id, merchant_id, number desc);
create index checkouts_by_email on checkouts
  (lower(customer ->> 'email'), merchant_id, number desc);
create index checkouts_by_name on checkouts
  (lower(customer ->> 'last_name'), lower(customer ->> 'first_name'), merchant_id)
  where lower(customer ->> 'last_name') is not null;

-- A checkout by its card, and by what the gateway calls its payments and refunds.
create index payment_attempts_by_last_four on payment_attempts
  (card_last4, merchant_id, checkout_id desc) where card_last4 is not null;
create index payment_attempts_by_payment_ref on payment_attempts (payment_ref)
  where payment_ref is not null;
create index payment_attempts_by_customer_ref on payment_attempts (customer_ref)
  where customer_ref is not null;
create index collections_by_payment_ref on collections (payment_ref) where payment_ref is not null;
create index refund_parts_by_refund_ref on refund_parts (refund_ref) where refund_ref is not null;

-- Lists of what is rare. What is common is found by walking the primary key.
drop index callbacks_exhausted;
create index callbacks_exhausted on callbacks (id) where status = 'exhausted';
create index callbacks_exhausted_of_merchant on callbacks (merchant_id, id)
  where status = 'exhausted';
drop index instalments_overdue;
create index instalments_overdue on instalments (due_on, checkout_id, number)
  where status = 'overdue';
create index instalments_overdue_of_merchant on instalments
  (merchant_id, due_on, checkout_id, number) where status = 'overdue';
create index instalments_cancelled on instalments (checkout_id, number)
  where status = 'cancelled';
create index instalments_cancelled_of_merchant on instalments (merchant_id, checkout_id, number)
  where status = 'cancelled';
create index refund_requests_by_status_of_merchant on refund_requests
  (merchant_id, status, created_at, id);

-- An operator takes an alert and closes it, with a reason.
alter table alerts add column taken_at timestamptz(3);
alter table alerts add column taken_by text;
alter table alerts add column closed_at timestamptz(3);
alter table alerts add column closed_by text;
alter table alerts add column close_reason text;
create index alerts_open on alerts (at, id) where closed_at is null;

-- Who acted on the command line: the user and the host of the process, beside the name that
-- TRANCHE_OPERATOR claims. Null for rows from before, and for acts of a person with a session.
alter table operator_actions add column os_user text;
alter table operator_actions add column host text;
