-- Disputes: payments that cardholders take back through their banks.

create table disputes (
  merchant_id         uuid not null,
  id                  uuid not null,
  -- What the gateway calls it.
  dispute_ref         text not null,
  checkout_id         uuid not null,
  -- The first payment of the plan that the disputed payment brought.
  instalment          integer not null,
  payment_ref         text not null,
  amount              bigint not null check (amount > 0),
  currency            text not null,
  reason              text not null,
  network_reason_code text,
  status              text not null check (status in
                        ('inquiry', 'needs_response', 'under_review', 'won', 'lost', 'closed')),
  created_at          timestamptz(3) not null,
  due_by              timestamptz(3),
  -- What the gateway withdrew and did not reinstate, and what it charged, as far as it is posted.
  withdrawn           bigint not null check (withdrawn >= 0),
  fee                 bigint not null check (fee >= 0),
  -- Nothing of the plan is collected: while it is open, and after a loss until an operator decides.
  is_pausing          boolean not null,
  warned_at           timestamptz(3),
  staged_at           timestamptz(3),
  submitted_at        timestamptz(3),
  closed_at           timestamptz(3),
  due_at              timestamptz(3),
  tries               integer not null default 0,
  lease               uuid,
  leased_until        timestamptz(3),
  primary key (id, merchant_id),
  unique (merchant_id, dispute_ref),
  foreign key (checkout_id, instalment, merchant_id)
    references instalments (checkout_id, number, merchant_id),
  check ((status in ('won', 'lost', 'closed')) = (closed_at is not null)),
  check ((closed_at is null) = (due_at is not null)),
  check (closed_at is not null or is_pausing)
);
create index disputes_of_checkout on disputes (checkout_id, merchant_id);
create index disputes_by_ref on disputes (dispute_ref);
create index disputes_by_age on disputes (created_at, id);
create index disputes_due on disputes (due_at) where due_at is not null;
create index disputes_due_of_merchant on disputes (merchant_id, due_at) where due_at is not null;

-- The books get an account for what disputes took.
alter table postings add column dispute_id uuid;
alter table postings drop constraint postings_kind_check;
alter table postings add constraint postings_kind_check check (kind in
  ('sold', 'authorised', 'captured', 'used', 'collected', 'voided', 'lapsed', 'cancelled',
   'restored', 'refunded', 'returned', 'withdrawn', 'reinstated', 'reserved', 'released'));
alter table postings drop constraint postings_debit_check;
alter table postings add constraint postings_debit_check check (debit in
  ('sale', 'outstanding', 'collected', 'refunded', 'cancelled', 'disputed', 'issuer', 'held',
   'refundable', 'reserved'));
alter table postings drop constraint postings_credit_check;
alter table postings add constraint postings_credit_check check (credit in
  ('sale', 'outstanding', 'collected', 'refunded', 'cancelled', 'disputed', 'issuer', 'held',
   'refundable', 'reserved'));
alter table postings drop constraint postings_check;
alter table postings add constraint postings_check check ((kind, debit, credit) in (
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
  ('withdrawn', 'disputed', 'collected'),
  ('reinstated', 'collected', 'disputed'),
  ('reserved', 'reserved', 'refundable'),
  ('released', 'refundable', 'reserved')));
