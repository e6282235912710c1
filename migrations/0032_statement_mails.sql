-- The statement of each paid payout goes to the merchant by mail: an outbox, written with the payment.

create table statement_mails (
  merchant_id  uuid not null,
  -- Also the Message-ID of every attempt to send it.
  id           uuid not null,
  payout_id    uuid not null,
  status       text not null check (status in ('pending', 'sent', 'refused', 'skipped')),
  created_at   timestamptz(3) not null,
  due_at       timestamptz(3),
  settled_at   timestamptz(3),
  tries        integer not null default 0,
  -- What the mail server answered last, without the address.
  response     text,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (id, merchant_id),
  unique (merchant_id, payout_id),
  foreign key (payout_id, merchant_id) references payouts (id, merchant_id),
  check ((status = 'pending') = (due_at is not null)),
  check ((status = 'pending') = (settled_at is null))
);
create index statement_mails_due on statement_mails (due_at) where due_at is not null;
create index statement_mails_due_of_merchant on statement_mails (merchant_id, due_at)
  where due_at is not null;

-- A statement is about no checkout.
alter table mailbox alter column checkout_id drop not null;
