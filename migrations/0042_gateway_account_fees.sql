-- What the gateway charged the account itself and not for a payment (decision 0131). Each of its
-- transactions is one row, posted from `clearing` to `gateway_fees` of the house. A negative fee was
-- returned.
create table gateway_account_fees (
  transaction_ref text primary key,
  type            text not null,
  fee             bigint not null check (fee <> 0),
  currency        text not null,
  at              timestamptz(3) not null
);
create index gateway_account_fees_at on gateway_account_fees (at);
