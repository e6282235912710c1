-- What merchants are owed and paid: terms with dates, entries in the merchants' books, payouts.

-- Public holidays. No payout is made on them, nor on a Saturday or a Sunday.
create table holidays (
  territory text not null references territories (code),
  on_date   date not null,
  name      text not null,
  primary key (territory, on_date)
);

-- What a merchant pays for the service, from a local date on. A merchant without terms is not
-- settled by the service.
create table settlement_terms (
  merchant_id          uuid not null references merchants (id),
  from_on              date not null,
  -- `whole`: the order is owed once its first payment is collected. `as_collected`: each payment is.
  funding              text not null check (funding in ('whole', 'as_collected')),
  basis_points         integer not null check (basis_points between 0 and 10000),
  fixed                bigint not null check (fixed >= 0),
  vat_basis_points     integer not null check (vat_basis_points between 0 and 10000),
  -- Whether the fee of a sale is kept or returned when the sale is refunded.
  refund_fee           text not null check (refund_fee in ('kept', 'returned')),
  -- Of each day's sales so much is held back for so many days.
  reserve_basis_points integer not null check (reserve_basis_points between 0 and 10000),
  reserve_days         integer not null check (reserve_days between 0 and 366),
  created_at           timestamptz(3) not null,
  primary key (merchant_id, from_on)
);

-- A merchant's payout of one business day.
create table payouts (
  merchant_id    uuid not null references merchants (id),
  id             uuid not null,
  number         bigint not null,
  -- What the merchant reads on its bank statement.
  reference      text not null,
  business_on    date not null,
  amount         bigint not null check (amount > 0),
  currency       text not null,
  lines          integer not null check (lines > 0),
  status         text not null
                 check (status in ('draft', 'approved', 'exported', 'paid', 'returned')),
  created_at     timestamptz(3) not null,
  -- Two different operators approve a payout.
  first_approver text,
  approver       text,
  approved_at    timestamptz(3),
  export_id      uuid,
  exported_at    timestamptz(3),
  paid_at        timestamptz(3),
  bank_reference text,
  returned_at    timestamptz(3),
  return_reason  text,
  primary key (id, merchant_id),
  unique (merchant_id, number),
  unique (merchant_id, reference),
  unique (merchant_id, business_on),
  check (approver is null or first_approver is not null and approver <> first_approver),
  check ((status = 'draft') = (approver is null)),
  check ((approver is null) = (approved_at is null)),
  check ((status in ('exported', 'paid', 'returned')) = (export_id is not null)),
  check ((export_id is null) = (exported_at is null)),
  check ((paid_at is null) = (bank_reference is null)),
  check ((status = 'paid') <= (paid_at is not null)),
  check ((status = 'returned') = (returned_at is not null))
);
create index payouts_by_status on payouts (status, created_at, id);
create index payouts_by_age on payouts (created_at, id);
create index payouts_of_export on payouts (export_id) where export_id is not null;

-- The merchants' books: every change of what a merchant is owed, once, in the transaction of the row
-- that caused it. One row names all accounts: `gross` is the change before fees, and `net` is what
-- remains of it after our fee and the VAT on that fee.
create table settlement_entries (
  merchant_id     uuid not null,
  id              uuid not null,
  kind            text not null check (kind in
                    ('sale', 'refund', 'refund_reversed', 'dispute', 'dispute_reversed',
                     'dispute_fee', 'reserve', 'reserve_released', 'paid_out', 'payout_returned')),
  checkout_id     uuid,
  -- The payment that it is about; null: the whole order.
  instalment      integer,
  refund_id       uuid,
  dispute_id      uuid,
  gross           bigint not null,
  fee             bigint not null,
  vat             bigint not null,
  net             bigint not null,
  currency        text not null,
  at              timestamptz(3) not null,
  -- When a reserve is due to be released, and which reserve a release is of.
  release_on      date,
  reserve_id      uuid,
  -- The payout that was paid or returned.
  paid_payout_id  uuid,
  -- The payout that it is a line of. Set once.
  payout_id       uuid,
  line            integer,
  primary key (id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  foreign key (payout_id, merchant_id) references payouts (id, merchant_id),
  foreign key (paid_payout_id, merchant_id) references payouts (id, merchant_id),
  check (gross = fee + vat + net),
  check (fee = 0 or kind in ('sale', 'refund', 'refund_reversed', 'dispute_fee')),
  check ((payout_id is null) = (line is null)),
  check ((kind in ('reserve', 'reserve_released', 'paid_out', 'payout_returned'))
    = (checkout_id is null)),
  check ((kind = 'reserve') = (release_on is not null)),
  check ((kind = 'reserve_released') = (reserve_id is not null)),
  check ((kind in ('paid_out', 'payout_returned')) = (paid_payout_id is not null)),
  check (kind <> 'paid_out' or payout_id is null)
);
-- A sale is owed once, a reserve is released once, a payout is paid once.
create unique index settlement_entries_sale
  on settlement_entries (merchant_id, checkout_id, coalesce(instalment, 0)) where kind = 'sale';
create unique index settlement_entries_released on settlement_entries (merchant_id, reserve_id)
  where reserve_id is not null;
create unique index settlement_entries_paid on settlement_entries (merchant_id, paid_payout_id, kind)
  where paid_payout_id is not null;
create unique index settlement_entries_lines on settlement_entries (merchant_id, payout_id, line)
  where payout_id is not null;
create index settlement_entries_of_checkout on settlement_entries (checkout_id, merchant_id)
  where checkout_id is not null;
create index settlement_entries_open on settlement_entries (merchant_id, at)
  where payout_id is null and kind <> 'paid_out';
create index settlement_entries_reserves on settlement_entries (merchant_id, release_on)
  where kind = 'reserve';
create index settlement_entries_at on settlement_entries (at);

alter table list_totals drop constraint list_totals_list_check;
alter table list_totals add constraint list_totals_list_check
  check (list in ('checkouts', 'refund_requests', 'payouts'));

-- When a merchant's next payout is made, on the merchant's clock.
create table payout_days (
  merchant_id  uuid primary key references merchants (id),
  due_at       timestamptz(3) not null,
  tries        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3)
);
create index payout_days_due on payout_days (due_at);

-- The movements of one day, found without reading all others.
create index postings_at on postings using brin (at) with (autosummarize = on);

-- South Africa until 2040, by the Public Holidays Act: a holiday on a Sunday moves to the Monday.
insert into holidays (territory, on_date, name) values
  ('ZA', '2026-01-01', 'New Year''s Day'),
  ('ZA', '2026-03-21', 'Human Rights Day'),
  ('ZA', '2026-04-03', 'Good Friday'),
  ('ZA', '2026-04-06', 'Family Day'),
  ('ZA', '2026-04-27', 'Freedom Day'),
  ('ZA', '2026-05-01', 'Workers'' Day'),
  ('ZA', '2026-06-16', 'Youth Day'),
  ('ZA', '2026-08-09', 'National Women''s Day'),
  ('ZA', '2026-08-10', 'National Women''s Day (observed)'),
  ('ZA', '2026-09-24', 'Heritage Day'),
  ('ZA', '2026-12-16', 'Day of Reconciliation'),
  ('ZA', '2026-12-25', 'Christmas Day'),
  ('ZA', '2026-12-26', 'Day of Goodwill'),
  ('ZA', '2027-01-01', 'New Year''s Day'),
  ('ZA', '2027-03-21', 'Human Rights Day'),
  ('ZA', '2027-03-22', 'Human Rights Day (observed)'),
  ('ZA', '2027-03-26', 'Good Friday'),
  ('ZA', '2027-03-29', 'Family Day'),
  ('ZA', '2027-04-27', 'Freedom Day'),
  ('ZA', '2027-05-01', 'Workers'' Day'),
  ('ZA', '2027-06-16', 'Youth Day'),
  ('ZA', '2027-08-09', 'National Women''s Day'),
  ('ZA', '2027-09-24', 'Heritage Day'),
  ('ZA', '2027-12-16', 'Day of Reconciliation'),
  ('ZA', '2027-12-25', 'Christmas Day'),
  ('ZA', '2027-12-26', 'Day of Goodwill'),
  ('ZA', '2027-12-27', 'Day of Goodwill (observed)'),
  ('ZA', '2028-01-01', 'New Year''s Day'),
  ('ZA', '2028-03-21', 'Human Rights Day'),
  ('ZA', '2028-04-14', 'Good Friday'),
  ('ZA', '2028-04-17', 'Family Day'),
  ('ZA', '2028-04-27', 'Freedom Day'),
  ('ZA', '2028-05-01', 'Workers'' Day'),
  ('ZA', '2028-06-16', 'Youth Day'),
  ('ZA', '2028-08-09', 'National Women''s Day'),
  ('ZA', '2028-09-24', 'Heritage Day'),
  ('ZA', '2028-09-25', 'Heritage Day (observed)'),
  ('ZA', '2028-12-16', 'Day of Reconciliation'),
  ('ZA', '2028-12-25', 'Christmas Day'),
  ('ZA', '2028-12-26', 'Day of Goodwill'),
  ('ZA', '2029-01-01', 'New Year''s Day'),
  ('ZA', '2029-03-21', 'Human Rights Day'),
  ('ZA', '2029-03-30', 'Good Friday'),
  ('ZA', '2029-04-02', 'Family Day'),
  ('ZA', '2029-04-27', 'Freedom Day'),
  ('ZA', '2029-05-01', 'Workers'' Day'),
  ('ZA', '2029-06-16', 'Youth Day'),
  ('ZA', '2029-08-09', 'National Women''s Day'),
  ('ZA', '2029-09-24', 'Heritage Day'),
  ('ZA', '2029-12-16', 'Day of Reconciliation'),
  ('ZA', '2029-12-17', 'Day of Reconciliation (observed)'),
  ('ZA', '2029-12-25', 'Christmas Day'),
  ('ZA', '2029-12-26', 'Day of Goodwill'),
  ('ZA', '2030-01-01', 'New Year''s Day'),
  ('ZA', '2030-03-21', 'Human Rights Day'),
  ('ZA', '2030-04-19', 'Good Friday'),
  ('ZA', '2030-04-22', 'Family Day'),
  ('ZA', '2030-04-27', 'Freedom Day'),
  ('ZA', '2030-05-01', 'Workers'' Day'),
  ('ZA', '2030-06-16', 'Youth Day'),
  ('ZA', '2030-06-17', 'Youth Day (observed)'),
  ('ZA', '2030-08-09', 'National Women''s Day'),
  ('ZA', '2030-09-24', 'Heritage Day'),
  ('ZA', '2030-12-16', 'Day of Reconciliation'),
  ('ZA', '2030-12-25', 'Christmas Day'),
  ('ZA', '2030-12-26', 'Day of Goodwill'),
  ('ZA', '2031-01-01', 'New Year''s Day'),
  ('ZA', '2031-03-21', 'Human Rights Day'),
  ('ZA', '2031-04-11', 'Good Friday'),
  ('ZA', '2031-04-14', 'Family Day'),
  ('ZA', '2031-04-27', 'Freedom Day'),
  ('ZA', '2031-04-28', 'Freedom Day (observed)'),
  ('ZA', '2031-05-01', 'Workers'' Day'),
  ('ZA', '2031-06-16', 'Youth Day'),
  ('ZA', '2031-08-09', 'National Women''s Day'),
  ('ZA', '2031-09-24', 'Heritage Day'),
  ('ZA', '2031-12-16', 'Day of Reconciliation'),
  ('ZA', '2031-12-25', 'Christmas Day'),
  ('ZA', '2031-12-26', 'Day of Goodwill'),
  ('ZA', '2032-01-01', 'New Year''s Day'),
  ('ZA', '2032-03-21', 'Human Rights Day'),
  ('ZA', '2032-03-22', 'Human Rights Day (observed)'),
  ('ZA', '2032-03-26', 'Good Friday'),
  ('ZA', '2032-03-29', 'Family Day'),
  ('ZA', '2032-04-27', 'Freedom Day'),
  ('ZA', '2032-05-01', 'Workers'' Day'),
  ('ZA', '2032-06-16', 'Youth Day'),
  ('ZA', '2032-08-09', 'National Women''s Day'),
  ('ZA', '2032-09-24', 'Heritage Day'),
  ('ZA', '2032-12-16', 'Day of Reconciliation'),
  ('ZA', '2032-12-25', 'Christmas Day'),
  ('ZA', '2032-12-26', 'Day of Goodwill'),
  ('ZA', '2032-12-27', 'Day of Goodwill (observed)'),
  ('ZA', '2033-01-01', 'New Year''s Day'),
  ('ZA', '2033-03-21', 'Human Rights Day'),
  ('ZA', '2033-04-15', 'Good Friday'),
  ('ZA', '2033-04-18', 'Family Day'),
  ('ZA', '2033-04-27', 'Freedom Day'),
  ('ZA', '2033-05-01', 'Workers'' Day'),
  ('ZA', '2033-05-02', 'Workers'' Day (observed)'),
  ('ZA', '2033-06-16', 'Youth Day'),
  ('ZA', '2033-08-09', 'National Women''s Day'),
  ('ZA', '2033-09-24', 'Heritage Day'),
  ('ZA', '2033-12-16', 'Day of Reconciliation'),
  ('ZA', '2033-12-25', 'Christmas Day'),
  ('ZA', '2033-12-26', 'Day of Goodwill'),
  ('ZA', '2034-01-01', 'New Year''s Day'),
  ('ZA', '2034-01-02', 'New Year''s Day (observed)'),
  ('ZA', '2034-03-21', 'Human Rights Day'),
  ('ZA', '2034-04-07', 'Good Friday'),
  ('ZA', '2034-04-10', 'Family Day'),
  ('ZA', '2034-04-27', 'Freedom Day'),
  ('ZA', '2034-05-01', 'Workers'' Day'),
  ('ZA', '2034-06-16', 'Youth Day'),
  ('ZA', '2034-08-09', 'National Women''s Day'),
  ('ZA', '2034-09-24', 'Heritage Day'),
  ('ZA', '2034-09-25', 'Heritage Day (observed)'),
  ('ZA', '2034-12-16', 'Day of Reconciliation'),
  ('ZA', '2034-12-25', 'Christmas Day'),
  ('ZA', '2034-12-26', 'Day of Goodwill'),
  ('ZA', '2035-01-01', 'New Year''s Day'),
  ('ZA', '2035-03-21', 'Human Rights Day'),
  ('ZA', '2035-03-23', 'Good Friday'),
  ('ZA', '2035-03-26', 'Family Day'),
  ('ZA', '2035-04-27', 'Freedom Day'),
  ('ZA', '2035-05-01', 'Workers'' Day'),
  ('ZA', '2035-06-16', 'Youth Day'),
  ('ZA', '2035-08-09', 'National Women''s Day'),
  ('ZA', '2035-09-24', 'Heritage Day'),
  ('ZA', '2035-12-16', 'Day of Reconciliation'),
  ('ZA', '2035-12-17', 'Day of Reconciliation (observed)'),
  ('ZA', '2035-12-25', 'Christmas Day'),
  ('ZA', '2035-12-26', 'Day of Goodwill'),
  ('ZA', '2036-01-01', 'New Year''s Day'),
  ('ZA', '2036-03-21', 'Human Rights Day'),
  ('ZA', '2036-04-11', 'Good Friday'),
  ('ZA', '2036-04-14', 'Family Day'),
  ('ZA', '2036-04-27', 'Freedom Day'),
  ('ZA', '2036-04-28', 'Freedom Day (observed)'),
  ('ZA', '2036-05-01', 'Workers'' Day'),
  ('ZA', '2036-06-16', 'Youth Day'),
  ('ZA', '2036-08-09', 'National Women''s Day'),
  ('ZA', '2036-09-24', 'Heritage Day'),
  ('ZA', '2036-12-16', 'Day of Reconciliation'),
  ('ZA', '2036-12-25', 'Christmas Day'),
  ('ZA', '2036-12-26', 'Day of Goodwill'),
  ('ZA', '2037-01-01', 'New Year''s Day'),
  ('ZA', '2037-03-21', 'Human Rights Day'),
  ('ZA', '2037-04-03', 'Good Friday'),
  ('ZA', '2037-04-06', 'Family Day'),
  ('ZA', '2037-04-27', 'Freedom Day'),
  ('ZA', '2037-05-01', 'Workers'' Day'),
  ('ZA', '2037-06-16', 'Youth Day'),
  ('ZA', '2037-08-09', 'National Women''s Day'),
  ('ZA', '2037-08-10', 'National Women''s Day (observed)'),
  ('ZA', '2037-09-24', 'Heritage Day'),
  ('ZA', '2037-12-16', 'Day of Reconciliation'),
  ('ZA', '2037-12-25', 'Christmas Day'),
  ('ZA', '2037-12-26', 'Day of Goodwill'),
  ('ZA', '2038-01-01', 'New Year''s Day'),
  ('ZA', '2038-03-21', 'Human Rights Day'),
  ('ZA', '2038-03-22', 'Human Rights Day (observed)'),
  ('ZA', '2038-04-23', 'Good Friday'),
  ('ZA', '2038-04-26', 'Family Day'),
  ('ZA', '2038-04-27', 'Freedom Day'),
  ('ZA', '2038-05-01', 'Workers'' Day'),
  ('ZA', '2038-06-16', 'Youth Day'),
  ('ZA', '2038-08-09', 'National Women''s Day'),
  ('ZA', '2038-09-24', 'Heritage Day'),
  ('ZA', '2038-12-16', 'Day of Reconciliation'),
  ('ZA', '2038-12-25', 'Christmas Day'),
  ('ZA', '2038-12-26', 'Day of Goodwill'),
  ('ZA', '2038-12-27', 'Day of Goodwill (observed)'),
  ('ZA', '2039-01-01', 'New Year''s Day'),
  ('ZA', '2039-03-21', 'Human Rights Day'),
  ('ZA', '2039-04-08', 'Good Friday'),
  ('ZA', '2039-04-11', 'Family Day'),
  ('ZA', '2039-04-27', 'Freedom Day'),
  ('ZA', '2039-05-01', 'Workers'' Day'),
  ('ZA', '2039-05-02', 'Workers'' Day (observed)'),
  ('ZA', '2039-06-16', 'Youth Day'),
  ('ZA', '2039-08-09', 'National Women''s Day'),
  ('ZA', '2039-09-24', 'Heritage Day'),
  ('ZA', '2039-12-16', 'Day of Reconciliation'),
  ('ZA', '2039-12-25', 'Christmas Day'),
  ('ZA', '2039-12-26', 'Day of Goodwill'),
  ('ZA', '2040-01-01', 'New Year''s Day'),
  ('ZA', '2040-01-02', 'New Year''s Day (observed)'),
  ('ZA', '2040-03-21', 'Human Rights Day'),
  ('ZA', '2040-03-30', 'Good Friday'),
  ('ZA', '2040-04-02', 'Family Day'),
  ('ZA', '2040-04-27', 'Freedom Day'),
  ('ZA', '2040-05-01', 'Workers'' Day'),
  ('ZA', '2040-06-16', 'Youth Day'),
  ('ZA', '2040-08-09', 'National Women''s Day'),
  ('ZA', '2040-09-24', 'Heritage Day'),
  ('ZA', '2040-12-16', 'Day of Reconciliation'),
  ('ZA', '2040-12-17', 'Day of Reconciliation (observed)'),
  ('ZA', '2040-12-25', 'Christmas Day'),
  ('ZA', '2040-12-26', 'Day of Goodwill');
