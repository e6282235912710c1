-- The money after the sale: captures, collections, refunds, and the books that they are kept in.

alter table instalments
  -- What refunds took from it before it was collected: so much is not asked for any more.
  add column reduced      bigint not null default 0 check (reduced >= 0 and reduced <= amount),
  -- The hold of the first payment; once collected, the payment that brought the money.
  add column payment_ref  text,
  add column collected_at timestamptz(3),
  -- How often the card was declined in this round of tries.
  add column declines     integer not null default 0,
  -- When it is to be tried next, on the merchant's clock; null when it is not by itself.
  add column due_at       timestamptz(3),
  -- While a refund of the checkout is in progress nothing of it is collected.
  add column paused       boolean not null default false,
  add column tries        integer not null default 0,
  add column lease        uuid,
  add column leased_until timestamptz(3);

update instalments i
set payment_ref = (
      select a.payment_ref from payment_attempts a
      where a.merchant_id = i.merchant_id and a.checkout_id = i.checkout_id
        and a.status = 'authorised' and i.number = 1),
    due_at = case when i.number = 1
      then (i.due_on + 1 + time '02:00') at time zone t.time_zone
      else (i.due_on + time '08:00') at time zone t.time_zone end
from merchants m join territories t on t.code = m.territory
where m.id = i.merchant_id and i.status in ('authorised', 'scheduled');

alter table instalments
  add check ((status in ('authorised', 'scheduled')) = (due_at is not null)),
  add check ((status = 'collected') = (collected_at is not null)),
  add check ((status = 'cancelled') <= (reduced = amount));
create index instalments_due on instalments (due_at) where due_at is not null and not paused;
create index instalments_due_of_merchant on instalments (merchant_id, due_at)
  where due_at is not null and not paused;
create index instalments_overdue on instalments (merchant_id, due_on) where status = 'overdue';

-- One request to the gateway for one payment: a capture of the hold, or a charge of the stored
-- card. Written before the gateway hears of it, settled once.
create table collections (
  merchant_id    uuid not null,
  id             uuid not null,
  checkout_id    uuid not null,
  instalment     integer not null,
  number         integer not null check (number > 0),
  kind           text not null check (kind in ('capture', 'charge')),
  status         text not null
                 check (status in ('open', 'collected', 'declined', 'lapsed', 'lost')),
  amount         bigint not null check (amount > 0),
  currency       text not null,
  payment_ref    text,
  decline_reason text,
  may_retry      boolean,
  created_at     timestamptz(3) not null,
  -- When the gateway was asked last, on the real clock: what is under way is not lost.
  asked_at       timestamptz(3) not null,
  settled_at     timestamptz(3),
  primary key (checkout_id, instalment, number, merchant_id),
  foreign key (checkout_id, instalment, merchant_id)
    references instalments (checkout_id, number, merchant_id),
  check ((status = 'open') = (settled_at is null)),
  check ((status = 'collected') <= (payment_ref is not null))
);
-- Nobody asks twice at once, and nobody is charged twice, whatever the code believes.
create unique index collections_open on collections (merchant_id, checkout_id, instalment)
  where status = 'open';
create unique index collections_collected on collections (merchant_id, checkout_id, instalment)
  where status = 'collected';

alter table refund_requests
  add column approved_at  timestamptz(3),
  add column completed_at timestamptz(3),
  -- Why it failed, for the operator.
  add column reason       text,
  -- What a failed request moved that could not be put back. It counts as refunded.
  add column kept         bigint not null default 0 check (kept >= 0 and kept <= amount),
  add column due_at       timestamptz(3),
  add column tries        integer not null default 0,
  add column lease        uuid,
  add column leased_until timestamptz(3);

-- Auto-approval integrations process by themselves, also what was asked for before this.
update refund_requests r set approved_at = r.created_at, due_at = r.created_at
from checkouts c join integrations i on i.id = c.integration_id
where c.id = r.checkout_id and c.merchant_id = r.merchant_id
  and r.status = 'requested' and i.refund_mode = 'auto';

alter table refund_requests
  add check ((status in ('pending', 'complete')) <= (approved_at is not null)),
  add check ((status = 'requested' and approved_at is not null) <= (due_at is not null)),
  add check ((status = 'pending') <= (due_at is not null)),
  add check ((status = 'failed' and kept = 0) <= (due_at is null)),
  add check (kept = 0 or status = 'failed');
create index refund_requests_due on refund_requests (due_at) where due_at is not null;
create index refund_requests_due_of_merchant on refund_requests (merchant_id, due_at)
  where due_at is not null;
create index refund_requests_by_status on refund_requests (status, created_at, id);
create index refund_requests_by_age on refund_requests (created_at, id);

-- The books are checked by ranges of checkouts, whosever they are.
drop index refund_requests_of_checkout;
create index refund_requests_of_checkout on refund_requests (checkout_id, merchant_id);
create index payment_attempts_of_checkout on payment_attempts (checkout_id);

-- What a refund is taken from (D30), fixed when it becomes `pending`. A retry splits anew, so a
-- part belongs to a round.
create table refund_parts (
  merchant_id uuid not null,
  id          uuid not null,
  checkout_id uuid not null,
  refund_id   uuid not null,
  round       integer not null check (round > 0),
  number      integer not null check (number > 0),
  instalment  integer not null,
  -- `cancel` a payment that was not collected, let go of the `hold`, give back to the `card`.
  kind        text not null check (kind in ('cancel', 'hold', 'card')),
  status      text not null check (status in ('open', 'done', 'failed', 'put_back')),
  amount      bigint not null check (amount > 0),
  -- What the payment was before, for when it is put back.
  from_status text not null,
  -- For the card: which payment gave the money, under which key it is asked for, and what the
  -- gateway calls the refund.
  payment_ref text,
  key_number  integer not null default 1,
  keyed_at    timestamptz(3) not null,
  -- When the gateway was asked last, on the real clock: what is under way is not lost.
  asked_at    timestamptz(3),
  refund_ref  text,
  settled_at  timestamptz(3),
  primary key (id, merchant_id),
  unique (merchant_id, refund_id, round, number),
  foreign key (refund_id, merchant_id) references refund_requests (id, merchant_id),
  foreign key (checkout_id, instalment, merchant_id)
    references instalments (checkout_id, number, merchant_id),
  check ((status = 'open') = (settled_at is null))
);
create index refund_parts_of_checkout on refund_parts (checkout_id, merchant_id);

-- The books: every movement, once, in the transaction of the row that caused it. A row moves an
-- amount from one account of a checkout to another, so that the whole always sums to zero.
create table postings (
  merchant_id uuid not null,
  id          uuid not null,
  checkout_id uuid not null,
  kind        text not null check (kind in
                ('sold', 'authorised', 'captured', 'used', 'collected', 'voided', 'lapsed',
                 'cancelled', 'restored', 'refunded', 'returned', 'reserved', 'released')),
  debit       text not null check (debit in
                ('sale', 'outstanding', 'collected', 'refunded', 'cancelled',
                 'issuer', 'held', 'refundable', 'reserved')),
  credit      text not null check (credit in
                ('sale', 'outstanding', 'collected', 'refunded', 'cancelled',
                 'issuer', 'held', 'refundable', 'reserved')),
  amount      bigint not null check (amount > 0),
  currency    text not null,
  instalment  integer,
  refund_id   uuid,
  at          timestamptz(3) not null,
  -- In the order in which the books of a checkout are added up.
  primary key (checkout_id, merchant_id, id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((kind, debit, credit) in (
    ('sold', 'outstanding', 'sale'),
    ('authorised', 'held', 'issuer'),
    ('captured', 'collected', 'outstanding'),
    ('used', 'issuer', 'held'),
    ('collected', 'collected', 'outstanding'),
    ('voided', 'issuer', 'held'),
    ('lapsed', 'issuer', 'held'),
    ('cancelled', 'cancelled', 'outstanding'),
    ('restored', 'outstanding', 'cancelled'),
    ('refunded', 'refunded', 'collected'),
    ('returned', 'collected', 'refunded'),
    ('reserved', 'reserved', 'refundable'),
    ('released', 'refundable', 'reserved')))
);

insert into postings
select c.merchant_id, gen_random_uuid(), c.id, 'sold', 'outstanding', 'sale', c.amount, c.currency,
  null, null, c.completed_at
from checkouts c where c.status = 'successful';
insert into postings
select c.merchant_id, gen_random_uuid(), c.id, 'authorised', 'held', 'issuer', i.amount,
  c.currency, 1, null, c.completed_at
from checkouts c join instalments i
  on i.checkout_id = c.id and i.merchant_id = c.merchant_id and i.number = 1
where i.status = 'authorised';
insert into postings
select r.merchant_id, gen_random_uuid(), r.checkout_id, 'reserved', 'reserved', 'refundable',
  r.amount, r.currency, null, r.id, r.created_at
from refund_requests r where r.status = 'requested';

-- How far the continuous audit has come.
create table audit (
  only_row     boolean primary key default true check (only_row),
  after        uuid not null,
  leased_until timestamptz(3)
);
insert into audit (after) values ('00000000-0000-0000-0000-000000000000');
