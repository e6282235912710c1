-- Whether this database knows everything that the gateway did (decision 0097).
create table gateway_mark (
  only_row       boolean primary key default true check (only_row),
  -- What the gateway calls this database. Null until the service has started once.
  id             uuid,
  -- Raised here first and then at the gateway. If the gateway's is higher, this database was restored.
  beat           bigint not null default 0,
  beat_at        timestamptz(3),
  -- The server that wrote the last beat: its system identifier, timeline and database.
  server         text,
  -- No money moves from then on, until an operator has reconciled.
  stopped_at     timestamptz(3),
  stopped_reason text,
  due_at         timestamptz(3),
  check ((stopped_at is null) = (stopped_reason is null))
);
insert into gateway_mark (only_row) values (true);

-- Checkouts of which nothing moves, because the gateway did something that we cannot record.
create table gateway_blocks (
  merchant_id uuid not null,
  checkout_id uuid not null,
  -- What the gateway calls it.
  reference   text not null,
  alert_id    uuid not null,
  created_at  timestamptz(3) not null,
  cleared_at  timestamptz(3),
  primary key (checkout_id, reference, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);

-- A walk through the gateway's records. One that was interrupted continues where it was. The process
-- that walks holds an advisory lock.
create table reconciliation_runs (
  id           uuid primary key,
  from_at      timestamptz(3),
  to_at        timestamptz(3),
  adopts       boolean not null,
  -- The kind of records that is read now, and the last record that was compared. A null kind: all
  -- kinds were read.
  kind         text,
  after        text,
  checked      bigint not null default 0,
  began_at     timestamptz(3) not null,
  ended_at     timestamptz(3)
);
create table reconciliation_seen (
  run_id    uuid not null,
  reference text not null,
  primary key (run_id, reference)
);
create table reconciliation_findings (
  run_id      uuid not null,
  record_kind text not null,
  reference   text not null,
  kind        text not null,
  -- Null: the record belongs to no checkout of ours.
  of_merchant uuid,
  checkout_id text,
  -- The gateway's record, until the finding is adopted or reported.
  record      jsonb,
  created_at  timestamptz(3),
  -- The alert. Null: not reported yet, or adopted.
  alert_id    uuid,
  outcome     text check (outcome in ('adopted', 'blocked', 'reported')),
  primary key (run_id, record_kind, reference)
);

-- What the gateway charged, by its own transactions: each is posted once.
create table gateway_fees (
  transaction_ref text not null,
  type            text not null,
  payment_ref     text not null,
  merchant_id     uuid not null,
  checkout_id     uuid not null,
  fee             bigint not null,
  currency        text not null,
  at              timestamptz(3) not null,
  primary key (transaction_ref, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index gateway_fees_of_checkout on gateway_fees (checkout_id, merchant_id);

alter table postings drop constraint postings_kind_check;
alter table postings add constraint postings_kind_check check (kind in
  ('sold', 'authorised', 'captured', 'used', 'collected', 'voided', 'lapsed', 'cancelled',
   'restored', 'refunded', 'returned', 'withdrawn', 'reinstated', 'reserved', 'released',
   'gateway_fee', 'gateway_fee_returned')) not valid;
alter table postings drop constraint postings_debit_check;
alter table postings add constraint postings_debit_check check (debit in
  ('sale', 'outstanding', 'collected', 'refunded', 'cancelled', 'disputed', 'issuer', 'held',
   'refundable', 'reserved', 'clearing', 'gateway_fees')) not valid;
alter table postings drop constraint postings_credit_check;
alter table postings add constraint postings_credit_check check (credit in
  ('sale', 'outstanding', 'collected', 'refunded', 'cancelled', 'disputed', 'issuer', 'held',
   'refundable', 'reserved', 'clearing', 'gateway_fees')) not valid;
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
  ('released', 'refundable', 'reserved'),
  ('gateway_fee', 'gateway_fees', 'clearing'),
  ('gateway_fee_returned', 'clearing', 'gateway_fees'))) not valid;
