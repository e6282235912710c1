-- The shopper pays: attempts at the gateway, the plan, what was agreed to, and the callback to come.

-- In a sandbox every merchant has a clock of its own, this much ahead of the real one (D35).
alter table merchants
  add column clock_ahead_ms bigint not null default 0 check (clock_ahead_ms >= 0);
-- The furthest clock is asked for whenever due work is looked for.
create index merchants_by_clock on merchants (clock_ahead_ms);

-- One try to pay a checkout: written before the gateway hears of it, kept for ever. The status
-- says what is known; `due_at` says when somebody must look again, on the merchant's clock.
create table payment_attempts (
  merchant_id        uuid not null,
  id                 uuid not null,
  checkout_id        uuid not null,
  number             integer not null check (number > 0),
  status             text not null check (status in
                       ('starting', 'challenged', 'authorised', 'declined', 'refused',
                        'voiding', 'voided')),
  number_of_payments integer not null,
  amount             bigint not null check (amount > 0),
  currency           text not null,
  -- Needed to ask the gateway the same thing again; forgotten once the answer is known.
  sealed_card_token  bytea,
  consent            jsonb,
  customer_ref       text,
  payment_ref        text,
  challenge_url      text,
  card_ref           text,
  card_brand         text,
  card_last4         text,
  capture_before     timestamptz(3),
  decline_reason     text,
  may_retry          boolean,
  created_at         timestamptz(3) not null,
  settled_at         timestamptz(3),
  due_at             timestamptz(3),
  tries              integer not null default 0,
  -- Who is looking right now; on the real clock. A result counts only under its own lease.
  lease              uuid,
  leased_until       timestamptz(3),
  primary key (id, merchant_id),
  unique (merchant_id, checkout_id, number),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((status in ('starting', 'challenged', 'voiding')) = (due_at is not null)),
  check ((status = 'authorised') <= (payment_ref is not null))
);
-- D18: at most one attempt of a checkout is in flight, whatever the code believes.
create unique index payment_attempts_in_flight on payment_attempts (merchant_id, checkout_id)
  where status in ('starting', 'challenged');
-- And at most one becomes the outcome.
create unique index payment_attempts_outcome on payment_attempts (merchant_id, checkout_id)
  where status = 'authorised';
create index payment_attempts_due on payment_attempts (due_at) where due_at is not null;
create index payment_attempts_due_of_merchant on payment_attempts (merchant_id, due_at)
  where due_at is not null;

create table instalments (
  merchant_id uuid not null,
  checkout_id uuid not null,
  number      integer not null check (number > 0),
  amount      bigint not null check (amount > 0),
  currency    text not null,
  due_on      date not null,
  status      text not null
              check (status in ('authorised', 'scheduled', 'collected', 'overdue', 'cancelled')),
  primary key (checkout_id, number, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);

-- A card is kept only for later payments, with what the shopper agreed to (D23).
create table stored_cards (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  customer_ref text not null,
  card_ref     text not null,
  brand        text,
  last4        text,
  consent      jsonb not null,
  created_at   timestamptz(3) not null,
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);

-- One per checkout that ended `successful` or `cancelled`, with the bytes that will be sent.
create table callbacks (
  merchant_id    uuid not null,
  id             uuid not null,
  checkout_id    uuid not null,
  integration_id uuid not null references integrations (id),
  notify_url     text not null,
  payload        bytea not null,
  status         text not null check (status in ('pending', 'delivered', 'exhausted')),
  created_at     timestamptz(3) not null,
  primary key (id, merchant_id),
  unique (merchant_id, checkout_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);

-- Every move of a checkout out of `received`. There is at most one: nothing ends twice.
create table checkout_moves (
  merchant_id uuid not null,
  checkout_id uuid not null,
  from_status text not null check (from_status = 'received'),
  to_status   text not null check (to_status in ('successful', 'cancelled', 'invalid_payload')),
  at          timestamptz(3) not null,
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
