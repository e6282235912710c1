-- Refunds.

create table refund_requests (
  merchant_id            uuid not null,
  id                     uuid not null,
  number                 bigint not null,
  checkout_id            uuid not null,
  gateway                text not null default 'main',
  integration_id         uuid not null references integrations (id),
  status                 text not null
                         check (status = any ('{requested,pending,complete,failed}')),
  amount                 bigint not null check (amount > 0),
  currency               text not null,
  signed                 boolean not null,
  -- It cancels the rest of a plan: it takes only from payments that were not collected.
  uncollected_only       boolean not null default false,
  created_at             timestamptz(3) not null,
  approved_at            timestamptz(3),
  completed_at           timestamptz(3),
  -- Why it failed, for the operator.
  reason                 text,
  -- The amount that a failed request refunded and that could not be taken back. It counts as
  -- refunded.
  kept                   bigint not null default 0 check (kept >= 0 and kept <= amount),
  due_at                 timestamptz(3),
  attempts                  integer not null default 0,
  lease                  uuid,
  leased_until           timestamptz(3),
  -- The person who requested it in the console, and why. A refund through the API has neither.
  requested_by           uuid,
  requested_by_name      text,
  request_reason         text,
  -- The first approval of a refund above the merchant's threshold. The second lets the refund begin.
  first_approved_by      uuid,
  first_approved_by_name text,
  first_approved_at      timestamptz(3),
  -- The person whose approval let it begin. Null if the service approved it when it was requested.
  approved_by            uuid,
  approved_by_name       text,
  primary key (id, merchant_id),
  unique (merchant_id, number),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  check ((status = any ('{pending,complete}')) <= (approved_at is not null)),
  check ((status = 'requested' and approved_at is not null) <= (due_at is not null)),
  check ((status = 'pending') <= (due_at is not null)),
  check ((status = 'failed' and kept = 0) <= (due_at is null)),
  check (kept = 0 or status = 'failed')
);
create index refund_requests_of_checkout on refund_requests (checkout_id, merchant_id);
create index refund_requests_due on refund_requests (due_at) where due_at is not null;
create index refund_requests_due_of_merchant on refund_requests (merchant_id, due_at)
  where due_at is not null;
create index refund_requests_by_age on refund_requests (created_at, id);
create index refund_requests_by_status on refund_requests (status, created_at, id);
create index refund_requests_by_status_of_merchant on refund_requests
  (merchant_id, status, created_at, id);
-- Refunds that wait for a person.
create index refund_requests_to_review on refund_requests (created_at, id)
  where status = 'requested' and approved_at is null;
create index refund_requests_to_review_of_merchant on refund_requests (merchant_id, created_at, id)
  where status = 'requested' and approved_at is null;
create index refund_requests_to_begin on refund_requests (created_at, id)
  where status = 'requested' and approved_at is not null;
create index refund_requests_to_begin_of_merchant on refund_requests (merchant_id, created_at, id)
  where status = 'requested' and approved_at is not null;

-- The payments that a refund is taken from (decision 0014), fixed when it becomes `pending`. A retry
-- splits again, so a part belongs to a round.
create table refund_parts (
  merchant_id uuid not null,
  id          uuid not null,
  checkout_id uuid not null,
  refund_id   uuid not null,
  round       integer not null check (round > 0),
  number      integer not null check (number > 0),
  instalment  integer not null,
  -- `cancel` a payment that was not collected, void or reduce the `hold`, or refund to the `card`.
  kind        text not null check (kind = any ('{cancel,hold,card}')),
  status      text not null check (status = any ('{open,done,failed,put_back}')),
  amount      bigint not null check (amount > 0),
  -- The payment's status before the refund, in case the refund is undone.
  from_status text not null,
  -- For the card: the payment that brought the money, the number of the key of the refund request,
  -- and the gateway's reference of the refund.
  payment_ref text,
  key_number  integer not null default 1,
  keyed_at    timestamptz(3) not null,
  -- When the gateway was last asked, on the real clock: a recent request may still be in flight.
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
create index refund_parts_by_refund_ref on refund_parts (refund_ref) where refund_ref is not null;
create index refund_parts_by_time on refund_parts (keyed_at) where status = 'done';
