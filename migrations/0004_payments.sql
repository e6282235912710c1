-- Payments by shoppers.

-- One attempt of a shopper: to pay a checkout (`first_payment`), to pay payments of its plan
-- (`plan_payment`), or to replace the stored card (`new_card`). It is written before the gateway is
-- called, and kept for ever. Its status says what is known. `due_at` is on the merchant's clock.
create table payment_attempts (
  merchant_id          uuid not null,
  id                   uuid not null,
  checkout_id          uuid not null,
  -- The gateway of the checkout. Like other tables whose rows fall due, this one has a copy, because
  -- a claim must know where to send the request.
  gateway              text not null default 'main',
  purpose              text not null check (purpose = any ('{first_payment,plan_payment,new_card}')),
  -- Counts the first payments of a checkout. The attempts on its plan are counted separately.
  number               integer not null check (number > 0),
  -- The numbers of the payments that it pays.
  instalments          integer[] not null,
  number_of_payments   integer not null,
  amount               bigint not null,
  currency             text not null,
  -- Whether the stored card is charged. Its reference is in card_ref from the beginning.
  uses_stored_card     boolean not null,
  -- If there is a consent, the card is stored once the attempt has succeeded.
  consent              jsonb,
  created_at           timestamptz(3) not null,
  -- The id of an attempt is derived from its checkout. This id ascends with time.
  written_id           uuid not null,
  status               text not null check (status = any ('{
                         starting, begun, challenged, authorised, charged, verified, declined,
                         refused, voiding, voided}')),
  -- The card's token, with which the service asks the gateway again, or the secret of a session in
  -- which the shopper enters the card. The service forgets it once the answer is known.
  sealed_card_token    bytea,
  -- The network of the shopper who began the attempt, sealed, so that a card that is declined later
  -- counts for it. The service forgets it once the attempt has ended.
  sealed_network       bytea,
  customer_ref         text,
  -- The gateway's payment, or its verification of the card.
  payment_ref          text,
  challenge_url        text,
  card_ref             text,
  card_brand           text,
  card_last4           text,
  -- The last month in which the card works (`2027-03`), if the gateway named it and it was not
  -- erased.
  card_expires         text check (card_expires ~ '^\d{4}-\d{2}$'),
  -- How the shopper's bank authenticated the payment (3-D Secure), if it was asked.
  authentication       jsonb,
  -- The card network's ids of the payment, if the gateway passed them on.
  scheme               jsonb,
  capture_before       timestamptz(3),
  decline_reason       text,
  may_retry            boolean,
  -- Why the card was declined, in the codes of the gateway and of the card network.
  decline_code         text,
  network_decline_code text,
  -- Recognises a card that was declined during its verification, if it is entered again.
  card_key             text,
  -- When the request was last sent, on the real clock.
  asked_at             timestamptz(3),
  settled_at           timestamptz(3),
  due_at               timestamptz(3),
  attempts                integer not null default 0,
  lease                uuid,
  leased_until         timestamptz(3),
  primary key (id, merchant_id),
  -- The checkout comes first, because the books are checked by ranges of checkouts, across all
  -- merchants.
  unique (checkout_id, merchant_id, purpose, number),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((status = any ('{starting,begun,challenged,voiding}')) = (due_at is not null)),
  check ((due_at is null) = (settled_at is not null)),
  check ((status = any ('{authorised,charged,verified}')) <= (payment_ref is not null)),
  constraint payment_attempts_purpose_status check (case status
    when 'authorised' then purpose = 'first_payment'
    when 'refused' then purpose = 'first_payment'
    when 'charged' then purpose = 'plan_payment'
    when 'verified' then purpose = 'new_card'
    else true end),
  constraint payment_attempts_purpose_amount check (case purpose
    when 'new_card' then amount = 0 and cardinality(instalments) = 0
    else amount > 0 and cardinality(instalments) > 0 end),
  constraint payment_attempts_purpose_card check (case purpose
    when 'first_payment' then not uses_stored_card
    when 'plan_payment' then not (uses_stored_card and consent is not null)
    else not uses_stored_card and consent is not null end),
  check (purpose = 'first_payment' or customer_ref is not null)
);
-- At most one attempt of a checkout is in flight, even if the code is wrong (decision 0023). A first
-- payment that is being voided cannot become the outcome. An attempt on the plan that is being
-- voided may still have charged the card.
create unique index payment_attempts_in_flight on payment_attempts (merchant_id, checkout_id)
  where status in ('starting', 'begun', 'challenged')
    or status = 'voiding' and purpose <> 'first_payment';
-- At most one attempt becomes the outcome.
create unique index payment_attempts_outcome on payment_attempts (merchant_id, checkout_id)
  where status = 'authorised';
-- A payment at the gateway pays for one attempt on the plan, whatever the gateway says of it. That may
-- be the hold of the first payment, if it was captured after it counted as lapsed.
create unique index payment_attempts_paid_by on payment_attempts (payment_ref, merchant_id)
  where status = 'charged';
create index payment_attempts_due on payment_attempts (due_at) where due_at is not null;
create index payment_attempts_due_of_merchant on payment_attempts (merchant_id, due_at)
  where due_at is not null;
-- An operator finds a checkout by its card, and by the gateway's reference of its payment.
create index payment_attempts_by_last_four on payment_attempts
  (card_last4, merchant_id, checkout_id desc) where card_last4 is not null;
create index payment_attempts_by_payment_ref on payment_attempts (payment_ref)
  where payment_ref is not null;
create index payment_attempts_by_customer_ref on payment_attempts (customer_ref)
  where customer_ref is not null;
create index payment_attempts_in_order on payment_attempts (written_id)
  where purpose = 'first_payment';
-- The daily reconciliation reads the rows of each day that the gateway must know.
create index payment_attempts_by_time on payment_attempts (created_at)
  where status = any ('{authorised,charged}');
