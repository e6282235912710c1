-- Checkouts.

-- The server reads the checks of a table anew for each statement that writes it. So the tables of a
-- sale compare with one array literal, which is shorter than a list of values when it is read.

-- The id comes first in the primary key, because an intermediary reads by id without naming the
-- merchant. There are no foreign keys to the merchant and the integration, because a create would
-- check both once per row (decision 0012). The statement that inserts a checkout joins the
-- merchant's row in list_totals, which refers to the merchant, and the integration has signed the
-- request. Neither is ever deleted.
create table checkouts (
  merchant_id         uuid not null,
  id                  uuid not null,
  number              bigint not null,
  integration_id      uuid not null,
  status              text not null
                      check (status = any ('{received,successful,cancelled,invalid_payload}')),
  amount              bigint not null check (amount > 0),
  currency            text not null,
  -- Sorted in byte order, so that the beginning of a reference is a range of the index.
  client_reference_id text collate "C" not null,
  -- Null only for a checkout of a payment link: no callback is made, and the shopper stays on our page.
  notify_url          text,
  success_url         text,
  cancel_url          text not null,
  customer            jsonb not null,
  line_items          jsonb not null,
  terms               integer[] not null check (cardinality(terms) > 0),
  number_of_payments  integer,
  signed              boolean not null,
  created_at          timestamptz(3) not null,
  expires_at          timestamptz(3) not null,
  completed_at        timestamptz(3),
  -- Set for a checkout created through v1: it authenticates the callback.
  sealed_verify       bytea,
  -- The language that the shopper chose, for the hosted page and for messages.
  language            text check (language = any ('{en,af,zu}')),
  erased_at           timestamptz(3),
  -- The payment link that a shopper opened; null if the merchant created the checkout.
  payment_link_id     uuid,
  -- The gateway that holds its payments, by its name in the settings. It never changes once an
  -- attempt exists. A version without this column used the only gateway, `main`.
  gateway             text not null default 'main',
  primary key (id, merchant_id),
  unique (merchant_id, number),
  check (payment_link_id is not null or (notify_url is not null and success_url is not null)),
  check (number_of_payments is null or number_of_payments = any (terms)),
  check ((status = any ('{successful,cancelled}')) = (completed_at is not null)),
  check ((status = any ('{successful,cancelled}')) <= (number_of_payments is not null))
);

-- Operators search and list by these. Each search is an equality on the first column of an index and
-- each list is a range of one, so both take the same time however many rows there are. All but the
-- first leave out checkouts that have not ended, because every create would have to write them. A
-- search scans the newest open checkouts instead.

-- A merchant that lost the answer to a create also finds its checkout by its reference (decision 0009).
create index checkouts_by_reference on checkouts (client_reference_id, merchant_id, number desc);
create index checkouts_by_email on checkouts
  (lower(customer ->> 'email'), merchant_id, number desc) where status <> 'received';
create index checkouts_by_name on checkouts
  (lower(customer ->> 'last_name'), lower(customer ->> 'first_name'), merchant_id)
  where status <> 'received' and lower(customer ->> 'last_name') is not null;
create index checkouts_by_amount on checkouts (amount, merchant_id, number)
  where status <> 'received';
create index checkouts_by_gateway on checkouts (gateway, id, merchant_id)
  where status <> 'received';
create index checkouts_by_gateway_of_merchant on checkouts (merchant_id, gateway, number)
  where status <> 'received';
create index checkouts_by_status on checkouts (status, id, merchant_id)
  where status <> 'received';
create index checkouts_by_status_of_merchant on checkouts (merchant_id, status, number)
  where status <> 'received';

create index checkouts_by_payment_link on checkouts (payment_link_id, merchant_id, number)
  where payment_link_id is not null;

-- A link that a shopper opens to get a checkout. Its status is derived from these rows, so nothing
-- is written here when a checkout is paid.
create table payment_links (
  merchant_id         uuid not null,
  id                  uuid not null,
  number              bigint not null,
  integration_id      uuid not null,
  -- Null if the shopper types the amount.
  amount              bigint check (amount > 0),
  currency            text not null,
  client_reference_id text collate "C" not null,
  -- If null, no callback is made for its checkouts.
  notify_url          text,
  -- If null, the shopper stays on our page, or returns to the page of the link after cancelling.
  success_url         text,
  cancel_url          text,
  -- Null if the shopper types the address.
  customer            jsonb,
  -- Whether the link makes many checkouts.
  reusable            boolean not null,
  signed              boolean not null,
  created_at          timestamptz(3) not null,
  expires_at          timestamptz(3),
  cancelled_at        timestamptz(3),
  -- How many checkouts it has made, and the last of them. If the link is not reusable, only the last
  -- one can be paid.
  checkouts           integer not null default 0,
  checkout_id         uuid,
  -- Chosen by the person's browser, so that a repeated request makes one link. Null for the API.
  request_id          uuid,
  primary key (id, merchant_id),
  unique (merchant_id, number),
  check (reusable or (amount is not null and expires_at is not null)),
  check (not reusable or customer is null),
  check ((checkouts > 0) = (checkout_id is not null))
);

-- Personal data is removed from a link some time after it expired, or when its shopper is erased.
create index payment_links_with_customer on payment_links (expires_at)
  where customer is not null;
create unique index payment_links_by_request on payment_links (merchant_id, request_id)
  where request_id is not null;
create index payment_links_by_email on payment_links (lower(customer ->> 'email'))
  where customer is not null;

-- Every move of a checkout out of `received`. A checkout has at most one, because it ends only
-- once.
create table checkout_moves (
  merchant_id uuid not null,
  checkout_id uuid not null,
  from_status text not null check (from_status = 'received'),
  to_status   text not null check (to_status = any ('{successful,cancelled,invalid_payload}')),
  at          timestamptz(3) not null,
  primary key (checkout_id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
