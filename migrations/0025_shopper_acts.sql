-- What a shopper does to a plan after paying: pays late, next or all payments, or replaces the card.

create table shopper_attempts (
  merchant_id       uuid not null,
  id                uuid not null,
  checkout_id       uuid not null,
  number            integer not null check (number > 0),
  purpose           text not null check (purpose in ('pay', 'replace_card')),
  status            text not null check (status in
                      ('starting', 'challenged', 'charged', 'verified', 'declined', 'voiding',
                       'voided')),
  -- The numbers of the payments that it covers. Empty: it replaces the card.
  instalments       integer[] not null,
  amount            bigint not null check (amount >= 0),
  currency          text not null,
  -- The token of the card that the shopper entered, encrypted until the outcome is known.
  sealed_card_token bytea,
  -- True: the stored card is charged. Its reference is in card_ref from the beginning.
  uses_stored_card  boolean not null,
  -- True: the card replaces the stored one once the attempt has succeeded.
  keeps_card        boolean not null,
  consent           jsonb,
  customer_ref      text not null,
  -- The gateway's payment, or its verification of the card.
  payment_ref       text,
  challenge_url     text,
  card_ref          text,
  card_brand        text,
  card_last4        text,
  card_expires      text,
  decline_reason    text,
  may_retry         boolean,
  -- The codes of the gateway and of the card network.
  decline_code      text,
  network_decline_code text,
  created_at        timestamptz(3) not null,
  -- When the request was last sent, on the real clock. Null: it never was.
  asked_at          timestamptz(3),
  settled_at        timestamptz(3),
  due_at            timestamptz(3),
  tries             integer not null default 0,
  lease             uuid,
  leased_until      timestamptz(3),
  primary key (id, merchant_id),
  unique (merchant_id, checkout_id, number),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((status in ('starting', 'challenged', 'voiding')) = (due_at is not null)),
  check ((due_at is null) = (settled_at is not null)),
  check ((purpose = 'pay') = (cardinality(instalments) > 0)),
  check ((purpose = 'pay') = (amount > 0)),
  check (keeps_card = (consent is not null)),
  check (not (keeps_card and uses_stored_card)),
  check ((purpose = 'replace_card') <= keeps_card)
);
-- One act at a time: until its outcome is known, it may have charged the card.
create unique index shopper_attempts_in_flight on shopper_attempts (merchant_id, checkout_id)
  where due_at is not null;
create index shopper_attempts_due on shopper_attempts (due_at) where due_at is not null;
create index shopper_attempts_due_of_merchant on shopper_attempts (merchant_id, due_at)
  where due_at is not null;
create index shopper_attempts_of_checkout on shopper_attempts (checkout_id);

-- Cards that are charged no more. The gateway removes each once no request may still use it.
create table replaced_cards (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  card_ref     text not null,
  customer_ref text not null,
  brand        text,
  last4        text,
  expires      text,
  consent      jsonb not null,
  created_at   timestamptz(3) not null,
  replaced_at  timestamptz(3) not null,
  detached_at  timestamptz(3),
  due_at       timestamptz(3),
  tries        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (checkout_id, card_ref, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((due_at is null) = (detached_at is not null))
);
create index replaced_cards_due on replaced_cards (due_at) where due_at is not null;
create index replaced_cards_due_of_merchant on replaced_cards (merchant_id, due_at)
  where due_at is not null;

-- The attempt of a shopper that pays this payment now. The payment is `paused` until it has ended,
-- so that a process of any version leaves it alone.
alter table instalments add column shopper_attempt uuid;
alter table instalments add constraint instalments_shopper_attempt_check
  check (shopper_attempt is null or paused);

-- The card that a request was opened with. A request in flight keeps it when the card is replaced.
alter table collections add column card_ref text;
alter table collections add column customer_ref text;

-- The shopper pays in person: `shopper`.
alter table collections drop constraint collections_kind_check;
alter table collections add constraint collections_kind_check
  check (kind in ('capture', 'charge', 'shopper'));
