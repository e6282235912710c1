-- The shopper pays on the hosted page.

-- One attempt to pay a checkout: written before the gateway hears of it, kept for ever. The status says
-- what is known. `due_at` is on the merchant's clock.
create table payment_attempts (
  merchant_id          uuid not null,
  id                   uuid not null,
  checkout_id          uuid not null,
  number               integer not null check (number > 0),
  status               text not null check (status in
                         ('starting', 'challenged', 'authorised', 'declined', 'refused',
                          'voiding', 'voided')),
  number_of_payments   integer not null,
  amount               bigint not null check (amount > 0),
  currency             text not null,
  -- The service needs it to ask the gateway again, and forgets it once the answer is known.
  sealed_card_token    bytea,
  consent              jsonb,
  customer_ref         text,
  payment_ref          text,
  challenge_url        text,
  card_ref             text,
  card_brand           text,
  card_last4           text,
  -- The last month in which the card works, `2027-03`, if the gateway named it and it was not erased.
  card_expires         text check (card_expires ~ '^\d{4}-\d{2}$'),
  -- How the shopper's bank authenticated the payment (3-D Secure), if it was asked.
  authentication       jsonb,
  capture_before       timestamptz(3),
  decline_reason       text,
  may_retry            boolean,
  -- Why the card was declined, in the codes of the gateway and of the card network.
  decline_code         text,
  network_decline_code text,
  created_at           timestamptz(3) not null,
  -- When the request to hold the amount was last sent, on the real clock.
  asked_at             timestamptz(3),
  settled_at           timestamptz(3),
  due_at               timestamptz(3),
  tries                integer not null default 0,
  lease                uuid,
  leased_until         timestamptz(3),
  -- The id of an attempt is derived from its checkout. This one ascends with time.
  written_id           uuid,
  primary key (id, merchant_id),
  unique (merchant_id, checkout_id, number),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((status in ('starting', 'challenged', 'voiding')) = (due_at is not null)),
  check ((status = 'authorised') <= (payment_ref is not null))
);
-- At most one attempt of a checkout is in flight, even if the code believes otherwise (decision 0023).
create unique index payment_attempts_in_flight on payment_attempts (merchant_id, checkout_id)
  where status in ('starting', 'challenged');
-- And at most one becomes the outcome.
create unique index payment_attempts_outcome on payment_attempts (merchant_id, checkout_id)
  where status = 'authorised';
create index payment_attempts_due on payment_attempts (due_at) where due_at is not null;
create index payment_attempts_due_of_merchant on payment_attempts (merchant_id, due_at)
  where due_at is not null;
-- The books are checked by ranges of checkouts, of all merchants.
create index payment_attempts_of_checkout on payment_attempts (checkout_id);
-- An operator finds a checkout by its card, and by what the gateway calls its payment.
create index payment_attempts_by_last_four on payment_attempts
  (card_last4, merchant_id, checkout_id desc) where card_last4 is not null;
create index payment_attempts_by_payment_ref on payment_attempts (payment_ref)
  where payment_ref is not null;
create index payment_attempts_by_customer_ref on payment_attempts (customer_ref)
  where customer_ref is not null;
create index payment_attempts_in_order on payment_attempts (written_id)
  where written_id is not null;

-- That the hosted page of a checkout was opened, once for each. No foreign key: the page is opened
-- while another transaction may hold the checkout's lock.
create table checkout_opens (
  merchant_id uuid not null,
  checkout_id uuid not null,
  id          uuid not null,
  at          timestamptz(3) not null,
  primary key (checkout_id, merchant_id)
);
create index checkout_opens_in_order on checkout_opens (id);
