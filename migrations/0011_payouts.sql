-- Payouts: the amounts that merchants are paid, with their days and accounts.

-- Public holidays. Payouts are not made on them, nor on Saturdays and Sundays.
create table holidays (
  territory text not null references territories (code),
  on_date   date not null,
  name      text not null,
  primary key (territory, on_date)
);

-- A merchant's payout for one business day.
create table payouts (
  merchant_id    uuid not null references merchants (id),
  id             uuid not null,
  number         bigint not null,
  -- The reference that the merchant reads on its bank statement.
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
  -- The operator who recorded that the bank returned it. Another one confirms it.
  return_noted_by text,
  -- The number of the account that it was approved for and is exported to.
  bank_account   integer,
  -- After a restore, the bank may have paid a payout whose export this database has lost. Then this
  -- is the time since which an operator must compare the payout with the bank.
  compare_since  timestamptz(3),
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
create index payouts_by_age on payouts (created_at, id);
create index payouts_of_merchant on payouts (merchant_id, created_at, id);
create index payouts_by_status on payouts (status, created_at, id);
create index payouts_by_status_of_merchant on payouts (merchant_id, status, created_at, id);
create index payouts_of_export on payouts (export_id) where export_id is not null;
-- An operator finds a payout by its reference on the bank statement.
create index payouts_by_reference on payouts (reference, merchant_id);

-- The sums of the lines of all payouts of a merchant, by kind. The transaction that makes a payout
-- adds its lines.
create table payout_sums (
  merchant_id uuid not null references merchants (id),
  kind        text not null,
  gross       bigint not null,
  fee         bigint not null,
  vat         bigint not null,
  net         bigint not null,
  primary key (merchant_id, kind)
);

-- When a merchant's next payout is made, on the merchant's clock.
create table payout_days (
  merchant_id    uuid primary key references merchants (id),
  due_at         timestamptz(3) not null,
  attempts          integer not null default 0,
  lease          uuid,
  leased_until   timestamptz(3),
  -- Sales before this time, on the merchant's clock, may be in a payout that a restore lost.
  compare_before timestamptz(3)
);
create index payout_days_due on payout_days (due_at);

-- The newest confirmed account of a merchant is in use. Rows are never deleted.
create table bank_accounts (
  merchant_id         uuid not null references merchants (id),
  number              integer not null check (number > 0),
  holder              text not null,
  bank                text not null,
  branch_code         text not null,
  -- The account number, encrypted with the master key.
  sealed_account      bytea not null,
  last4               text not null,
  created_at          timestamptz(3) not null,
  -- One operator proposes an account, and another one confirms it. A person's session proves who
  -- they are. A name stated at the command line proves nothing, and has no person.
  proposed_by         text not null,
  proposed_person_id  uuid,
  confirmed_by        text,
  confirmed_person_id uuid,
  confirmed_at        timestamptz(3),
  -- How many wrong account numbers were typed to confirm it.
  wrong_numbers       integer not null default 0,
  primary key (merchant_id, number),
  check (confirmed_by is null or confirmed_by <> proposed_by),
  check ((confirmed_by is null) = (confirmed_at is null))
);

-- Where a merchant's statements are mailed. Without a row they are not mailed.
create table statement_addresses (
  merchant_id uuid primary key references merchants (id),
  email       text not null,
  changed_at  timestamptz(3) not null
);

-- The next statement of a merchant. It is due on the merchant's clock, on the first business day
-- after the month. Entries become its lines before it is numbered.
create table statement_months (
  merchant_id  uuid primary key references merchants (id),
  -- The first day of the month.
  month        date not null check (extract(day from month) = 1),
  -- The number that it will get, and the number of lines so far.
  number       integer not null default 1 check (number > 0),
  lines        integer not null default 0 check (lines >= 0),
  due_at       timestamptz(3) not null,
  attempts     integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3)
);
create index statement_months_due on statement_months (due_at);

-- A merchant's statement for one month, with everything in it except its lines. Never changed.
create table monthly_statements (
  merchant_id         uuid not null references merchants (id),
  id                  uuid not null,
  -- Numbers start at 1 and have no gaps.
  number              integer not null check (number > 0),
  reference           text not null,
  month               date not null check (extract(day from month) = 1),
  created_at          timestamptz(3) not null,
  -- A correction has the number of the statement that it replaces, and the lines of the first one.
  corrects            integer check (corrects < number),
  lines_of            integer not null,
  currency            text not null,
  lines               integer not null check (lines > 0),
  -- The balance before and after the month, and the reserve after it.
  opening             bigint not null,
  closing             bigint not null,
  reserve             bigint not null,
  -- The sums of its lines by kind.
  sums                jsonb not null check (jsonb_typeof(sums) = 'array'),
  -- The merchant and the service as they were when the statement was made.
  merchant_name       text not null,
  merchant_address    text,
  merchant_vat_number text,
  issuer_name         text not null,
  issuer_address      text,
  issuer_vat_number   text,
  language            text not null,
  locale              text not null,
  time_zone           text not null,
  -- The last end of the chain of operators' actions that was posted before it was made.
  record_end          text,
  primary key (id, merchant_id),
  unique (merchant_id, number),
  unique (merchant_id, corrects),
  check (case when corrects is null then lines_of = number else lines_of <= corrects end)
);
create unique index monthly_statements_first on monthly_statements (merchant_id, month)
  where corrects is null;
create index monthly_statements_by_age on monthly_statements (created_at, id);
create index monthly_statements_of_merchant on monthly_statements (merchant_id, created_at, id);
create index monthly_statements_of_month on monthly_statements (month, created_at, id);

-- An outbox: the statement of each paid payout and of each month is mailed to the merchant. A row is
-- written in the transaction of the payment or the statement.
create table statement_mails (
  merchant_id  uuid not null,
  -- The id is also the Message-ID of every attempt to send the mail.
  id           uuid not null,
  -- Exactly one of these two is set.
  payout_id    uuid,
  statement_id uuid,
  status       text not null check (status in ('pending', 'sent', 'refused', 'skipped')),
  created_at   timestamptz(3) not null,
  due_at       timestamptz(3),
  settled_at   timestamptz(3),
  attempts        integer not null default 0,
  -- The last answer of the mail server, without the address.
  response     text,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (id, merchant_id),
  unique (merchant_id, payout_id),
  unique (merchant_id, statement_id),
  foreign key (payout_id, merchant_id) references payouts (id, merchant_id),
  foreign key (statement_id, merchant_id) references monthly_statements (id, merchant_id),
  check (num_nonnulls(payout_id, statement_id) = 1),
  check ((status = 'pending') = (due_at is not null)),
  check ((status = 'pending') = (settled_at is null))
);
create index statement_mails_due on statement_mails (due_at) where due_at is not null;
create index statement_mails_due_of_merchant on statement_mails (merchant_id, due_at)
  where due_at is not null;

-- South Africa's holidays until 2040. By the Public Holidays Act a holiday on a Sunday moves to the
-- Monday.
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
