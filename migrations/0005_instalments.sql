-- The payments of a plan, and the cards that they are charged to.

create table instalments (
  merchant_id     uuid not null,
  checkout_id     uuid not null,
  gateway         text not null default 'main',
  number          integer not null check (number > 0),
  amount          bigint not null check (amount > 0),
  currency        text not null,
  due_on          date not null,
  status          text not null
                  check (status = any ('{authorised,scheduled,collected,overdue,cancelled}')),
  -- The amount by which refunds reduced it before it was collected. It is not collected any more.
  reduced         bigint not null default 0 check (reduced >= 0 and reduced <= amount),
  -- The gateway's reference of the hold, or of the payment that collected it.
  payment_ref     text,
  collected_at    timestamptz(3),
  -- How many times the card was declined in this round of attempts.
  declines        integer not null default 0,
  -- Due times are on the merchant's clock.
  due_at          timestamptz(3),
  -- Set while a refund of the checkout is in progress. Until it has ended, nothing of the checkout
  -- is collected.
  paused          boolean not null default false,
  -- The attempt of a shopper that is paying this payment. The payment is `paused` until it has
  -- ended.
  shopper_attempt uuid
    constraint instalments_shopper_attempt_check check (shopper_attempt is null or paused),
  attempts           integer not null default 0,
  lease           uuid,
  leased_until    timestamptz(3),
  primary key (checkout_id, number, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((status = any ('{authorised,scheduled}')) = (due_at is not null)),
  check ((status = 'collected') = (collected_at is not null)),
  check ((status = 'cancelled') <= (reduced = amount))
);
create index instalments_due on instalments (due_at) where due_at is not null and not paused;
create index instalments_due_of_merchant on instalments (merchant_id, due_at)
  where due_at is not null and not paused;
-- Indexes for rare states. Common states are found through the primary key.
create index instalments_overdue on instalments (due_on, checkout_id, number)
  where status = 'overdue';
create index instalments_overdue_of_merchant on instalments
  (merchant_id, due_on, checkout_id, number) where status = 'overdue';
create index instalments_cancelled on instalments (checkout_id, number)
  where status = 'cancelled';
create index instalments_cancelled_of_merchant on instalments (merchant_id, checkout_id, number)
  where status = 'cancelled';

-- One request to the gateway for one payment: a capture of the hold, a charge of the stored card, or
-- a payment that the shopper makes in person. It is written before the gateway is called, and
-- settled once.
create table collections (
  merchant_id          uuid not null,
  id                   uuid not null,
  checkout_id          uuid not null,
  instalment           integer not null,
  number               integer not null check (number > 0),
  kind                 text not null check (kind = any ('{capture,charge,shopper}')),
  status               text not null
                       check (status = any ('{open,collected,declined,lapsed,lost}')),
  amount               bigint not null check (amount > 0),
  currency             text not null,
  -- The card that the request was opened with. A request in flight keeps it if the card is replaced.
  card_ref             text,
  customer_ref         text,
  -- Entering the same card number again gives the same key.
  card_key             text,
  payment_ref          text,
  decline_reason       text,
  may_retry            boolean,
  decline_code         text,
  network_decline_code text,
  -- How long the card network asked to wait before a retry.
  wait_hours           integer check (wait_hours > 0),
  -- The card network's ids of a charge. A hold and a shopper's payment have theirs at their
  -- attempt.
  scheme               jsonb,
  created_at           timestamptz(3) not null,
  -- When the gateway was last asked, on the real clock: a recent request may still be in flight.
  asked_at             timestamptz(3) not null,
  settled_at           timestamptz(3),
  primary key (checkout_id, instalment, number, merchant_id),
  foreign key (checkout_id, instalment, merchant_id)
    references instalments (checkout_id, number, merchant_id),
  check ((status = 'open') = (settled_at is null)),
  check ((status = 'collected') <= (payment_ref is not null))
);
-- A payment has at most one open request and is charged once, even if the code is wrong.
create unique index collections_open on collections (merchant_id, checkout_id, instalment)
  where status = 'open';
create unique index collections_collected on collections (merchant_id, checkout_id, instalment)
  where status = 'collected';
-- Only a shopper pays several of them with one payment at the gateway.
create unique index collections_paid_by on collections (payment_ref, merchant_id)
  where status = 'collected' and kind <> 'shopper';
create index collections_by_id on collections (id);
create index collections_by_payment_ref on collections (payment_ref) where payment_ref is not null;
create index collections_by_time on collections (created_at) where status = 'collected';

-- A card is stored only for later payments, with the consent that the shopper gave (decision 0027).
create table stored_cards (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  customer_ref text not null,
  card_ref     text not null,
  brand        text,
  last4        text,
  expires      text check (expires ~ '^\d{4}-\d{2}$'),
  card_key     text,
  consent      jsonb not null,
  created_at   timestamptz(3) not null,
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);

-- Cards that are no longer charged. The gateway removes each once no request can still use it. A card
-- that is stored again under the same reference leaves this table.
create table replaced_cards (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  gateway      text not null default 'main',
  card_ref     text not null,
  customer_ref text not null,
  brand        text,
  last4        text,
  expires      text,
  card_key     text,
  consent      jsonb not null,
  created_at   timestamptz(3) not null,
  replaced_at  timestamptz(3) not null,
  detached_at  timestamptz(3),
  due_at       timestamptz(3),
  attempts        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (checkout_id, card_ref, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((due_at is null) = (detached_at is not null))
);
create index replaced_cards_due on replaced_cards (due_at) where due_at is not null;
create index replaced_cards_due_of_merchant on replaced_cards (merchant_id, due_at)
  where due_at is not null;

-- No money of these checkouts moves, because the gateway did something that we cannot record.
create table gateway_blocks (
  merchant_id uuid not null,
  checkout_id uuid not null,
  -- The gateway's id of the record that blocks the checkout.
  reference   text not null,
  alert_id    uuid not null,
  created_at  timestamptz(3) not null,
  cleared_at  timestamptz(3),
  primary key (checkout_id, reference, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
