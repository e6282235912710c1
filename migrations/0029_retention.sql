-- Personal data goes after the time of retention, here and at the gateway.

-- How far each merchant's checkouts have come of age. One row per merchant, and none while there is
-- no time of retention. It falls due when the next checkout is old enough.
create table retention_marks (
  merchant_id  uuid not null primary key,
  -- The number of the last checkout that came of age.
  number       bigint not null,
  due_at       timestamptz(3) not null,
  tries        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3)
);
create index retention_marks_due on retention_marks (due_at);

-- Checkouts that came of age and are not erased yet. One that is not finished is looked at again.
create table erasures (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  due_at       timestamptz(3) not null,
  tries        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index erasures_due on erasures (due_at);
create index erasures_due_of_merchant on erasures (merchant_id, due_at);

-- The gateway's records of shoppers who were erased here, until the gateway has deleted them too.
create table deleted_customers (
  merchant_id  uuid not null,
  checkout_id  uuid not null,
  customer_ref text not null,
  due_at       timestamptz(3),
  deleted_at   timestamptz(3),
  tries        integer not null default 0,
  lease        uuid,
  leased_until timestamptz(3),
  primary key (checkout_id, customer_ref, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((due_at is null) = (deleted_at is not null))
);
create index deleted_customers_due on deleted_customers (due_at) where due_at is not null;
create index deleted_customers_due_of_merchant on deleted_customers (merchant_id, due_at)
  where due_at is not null;
