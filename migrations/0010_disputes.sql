-- Disputes: payments that cardholders reverse through their banks.

create table disputes (
  merchant_id         uuid not null,
  id                  uuid not null,
  -- The gateway's id of the dispute.
  dispute_ref         text not null,
  gateway             text not null default 'main',
  checkout_id         uuid not null,
  -- The first instalment that the disputed payment paid.
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
  -- The amount that the gateway withdrew and did not reinstate, and its fee, if they are posted.
  withdrawn           bigint not null check (withdrawn >= 0),
  fee                 bigint not null check (fee >= 0),
  -- How many answers of the gateway were recorded. Only an answer to a request that was made since
  -- the last one is recorded: another may be older.
  reads               integer not null default 0,
  -- Whether it pauses collecting: while it is open, and after a loss until an operator decides.
  is_pausing          boolean not null,
  warned_at           timestamptz(3),
  -- Facts about the order that the merchant or an operator supplied, and when they last did so.
  supplied            jsonb,
  supplied_at         timestamptz(3),
  -- When the merchant was last asked for them by mail, and the deadline for its answer.
  asked_at            timestamptz(3),
  asked_until         timestamptz(3),
  staged_at           timestamptz(3),
  -- The evidence as an operator staged it: exactly this is submitted.
  staged_evidence     jsonb,
  staged_files        uuid[],
  -- The SHA-256 of the fields and files, which identifies the evidence that an operator looked at.
  staged_hash         text,
  -- When its submission began. From then on the evidence cannot be staged again.
  submitting_at       timestamptz(3),
  -- Other operators cannot submit it before this time, on the real clock.
  submitting_until    timestamptz(3),
  submitted_at        timestamptz(3),
  closed_at           timestamptz(3),
  due_at              timestamptz(3),
  attempts               integer not null default 0,
  lease               uuid,
  leased_until        timestamptz(3),
  primary key (id, merchant_id),
  -- Two gateways may use the same reference.
  unique (merchant_id, gateway, dispute_ref),
  foreign key (checkout_id, instalment, merchant_id)
    references instalments (checkout_id, number, merchant_id),
  check ((status in ('won', 'lost', 'closed')) = (closed_at is not null)),
  -- The gateway may book the money of a dispute after its end.
  check (closed_at is not null or due_at is not null),
  check ((asked_at is null) = (asked_until is null)),
  check (closed_at is not null or is_pausing)
);
create index disputes_of_checkout on disputes (checkout_id, merchant_id);
create index disputes_by_ref on disputes (dispute_ref);
create index disputes_due on disputes (due_at) where due_at is not null;
create index disputes_due_of_merchant on disputes (merchant_id, due_at) where due_at is not null;
-- For the console's lists. Each page is a range of an index, for all merchants or for one.
create index disputes_by_age on disputes (created_at, id);
create index disputes_of_merchant on disputes (merchant_id, created_at, id);
create index disputes_by_status on disputes (status, created_at, id);
create index disputes_by_status_of_merchant on disputes (merchant_id, status, created_at, id);
create index disputes_by_gateway on disputes (gateway, created_at, id);
create index disputes_by_gateway_of_merchant on disputes (merchant_id, gateway, created_at, id);
-- The console counts the disputes that wait for evidence. The indexes by status do not show whether
-- evidence was submitted.
create index disputes_to_answer on disputes (created_at, id)
  where status = 'needs_response' and submitted_at is null;
create index disputes_to_answer_of_merchant on disputes (merchant_id, created_at, id)
  where status = 'needs_response' and submitted_at is null;

-- Files that support the merchant's side. A dispute has one of each kind.
create table dispute_files (
  merchant_id uuid not null,
  id          uuid not null,
  dispute_id  uuid not null,
  checkout_id uuid not null,
  kind        text not null check (kind in ('delivery', 'correspondence', 'receipt', 'other')),
  name        text not null check (length(name) between 1 and 100),
  media_type  text not null check (media_type in ('application/pdf', 'image/png', 'image/jpeg')),
  sha256      text not null,
  content     bytea not null check (length(content) between 1 and 2000000),
  added_at    timestamptz(3) not null,
  -- When it was removed or replaced. It stays while it is staged.
  removed_at  timestamptz(3),
  -- The gateway's id of the file, once it was uploaded.
  file_ref    text,
  primary key (id, merchant_id),
  foreign key (dispute_id, merchant_id) references disputes (id, merchant_id)
);
create unique index dispute_files_by_kind on dispute_files (merchant_id, dispute_id, kind)
  where removed_at is null;
create index dispute_files_of_dispute on dispute_files (dispute_id, merchant_id);
create index dispute_files_of_checkout on dispute_files (checkout_id, merchant_id);

-- The newest dispute at a gateway up to which all are recorded. After a poll that was interrupted,
-- or that found a dispute it could not record, the next one reads from the newest down to this one
-- again.
create table dispute_poll (
  gateway text primary key,
  reached text
);
