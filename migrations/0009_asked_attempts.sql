-- When the request to hold the amount was last sent, on the real clock. Null: it never was.
alter table payment_attempts add column asked_at timestamptz(3);

-- What the version before sent has no time of its own.
update payment_attempts set asked_at = now() where due_at is not null and customer_ref is not null;
