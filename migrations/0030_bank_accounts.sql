-- Where merchants are paid, and where their statements go.

-- The newest confirmed account of a merchant is in use. Rows are never deleted.
create table bank_accounts (
  merchant_id    uuid not null references merchants (id),
  number         integer not null check (number > 0),
  holder         text not null,
  bank           text not null,
  branch_code    text not null,
  -- The account number, encrypted with the master key.
  sealed_account bytea not null,
  last4          text not null,
  created_at     timestamptz(3) not null,
  -- One operator proposes an account, and another one confirms it.
  proposed_by    text not null,
  confirmed_by   text,
  confirmed_at   timestamptz(3),
  primary key (merchant_id, number),
  check (confirmed_by is null or confirmed_by <> proposed_by),
  check ((confirmed_by is null) = (confirmed_at is null))
);

-- Where a merchant's statements go by mail. Without a row they go nowhere.
create table statement_addresses (
  merchant_id uuid primary key references merchants (id),
  email       text not null,
  changed_at  timestamptz(3) not null
);

-- The account that the payout was exported for. Payouts that were exported before have none.
alter table payouts add column bank_account integer;
