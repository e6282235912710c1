-- Mail to shoppers: an outbox, written in the transaction that causes the message.

create table messages (
  merchant_id  uuid not null,
  id           uuid not null,
  -- Null for the mail of a payment link, which has `payment_link_id`.
  checkout_id  uuid,
  kind         text not null check (kind = any ('{
                 receipt, charge_soon, charged, declined, card_expires, card_replaced, refunded,
                 plan_finished, sign_in_link, answer, evidence_asked, payment_link}')),
  -- Which payment, refund or link it is about, so that one cause makes one message.
  about        text not null,
  -- Facts that the message states and that are not in the plan. They are never personal data.
  facts        jsonb not null,
  -- The token of a one-time link, encrypted until the message is sent, then null.
  sealed_token bytea,
  status       text not null check (status = any ('{pending,sent,refused,skipped}')),
  created_at   timestamptz(3) not null,
  -- When it first fell due. Retries end a fixed time later.
  planned_at   timestamptz(3) not null,
  due_at       timestamptz(3),
  settled_at   timestamptz(3),
  attempts        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3),
  payment_link_id uuid,
  primary key (id, merchant_id),
  unique (merchant_id, checkout_id, kind, about),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  foreign key (payment_link_id, merchant_id) references payment_links (id, merchant_id),
  check ((checkout_id is null) = (kind = 'payment_link')),
  check ((payment_link_id is null) = (checkout_id is not null)),
  check ((status = 'pending') = (due_at is not null)),
  check ((status = 'pending') = (settled_at is null)),
  check (sealed_token is null or status = 'pending')
);
create index messages_due on messages (due_at) where due_at is not null;
create index messages_due_of_merchant on messages (merchant_id, due_at) where due_at is not null;
-- The mails of a link, and how many links a merchant has mailed lately.
create unique index messages_of_link on messages (merchant_id, payment_link_id, about)
  where payment_link_id is not null;
create index messages_of_links on messages (merchant_id, created_at)
  where payment_link_id is not null;
create index messages_refused on messages (merchant_id, settled_at) where status = 'refused';

-- Every attempt to send a message, with the mail server's answer. Append-only.
create table message_attempts (
  merchant_id uuid not null,
  message_id  uuid not null,
  number      integer not null check (number > 0),
  at          timestamptz(3) not null,
  outcome     text not null check (outcome = any ('{sent,refused,failed}')),
  response    text not null,
  primary key (message_id, number, merchant_id),
  foreign key (message_id, merchant_id) references messages (id, merchant_id)
);

-- The messages of a finished checkout, with the attempts to send them, as one row. They are moved here
-- from the two tables above once they are old. Both columns are arrays of their rows, without columns
-- that are the same or null in all of them.
create table archived_messages (
  merchant_id uuid not null,
  checkout_id uuid not null,
  archived_at timestamptz(3) not null,
  messages    jsonb not null check (jsonb_typeof(messages) = 'array'),
  attempts    jsonb not null check (jsonb_typeof(attempts) = 'array'),
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);

-- A sandbox sends no mail. What it would have sent is here, for its mailbox page. A merchant's
-- statement has no checkout.
create table mailbox (
  merchant_id uuid not null,
  id          uuid not null,
  checkout_id uuid,
  sent_at     timestamptz(3) not null,
  sender      text not null,
  recipient   text not null,
  subject     text not null,
  text        text not null,
  html        text not null,
  primary key (id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
