-- The record: operators' actions, alerts and notes, and the books.

-- Every action of an operator, with a number, and a hash over the action and the hash before it.
-- Append-only.
create table operator_actions (
  id         uuid primary key,
  at         timestamptz(3) not null,
  operator   text not null,
  action     text not null,
  subject_id uuid,
  details    jsonb not null,
  number     bigint not null check (number > 0),
  hash       bytea not null,
  -- An action at the command line has the process's user and host, in addition to the name that
  -- TRANCHE_OPERATOR states.
  os_user    text,
  host       text,
  -- An action at the console has the person as they were at that time.
  person_id  uuid,
  roles      text[],
  address    text,
  session_id uuid,
  -- The merchant that the person or the key acted for, if they are its own. Its administrators read
  -- the action. Null for the service's staff.
  merchant_id uuid
);
create unique index operator_actions_by_number on operator_actions (number);
create index operator_actions_by_time on operator_actions (at, id);
create index operator_actions_of_subject on operator_actions (subject_id, at, id);
-- A merchant's drills. A subject may have many other actions.
create index operator_actions_drills on operator_actions (subject_id)
  where action = 'sandbox drill';
create index operator_actions_of_operator on operator_actions (operator, at, id);
create index operator_actions_of_person on operator_actions (person_id, at, id)
  where person_id is not null;
create index operator_actions_of_merchant on operator_actions (merchant_id, at, id)
  where merchant_id is not null;

-- The texts that people wrote or searched for in an action. The chained row has the digest of the
-- salt and the text. Erasing removes both, so that the text cannot be guessed from the digest, and
-- the chain stays intact.
create table action_texts (
  action_id uuid not null references operator_actions (id),
  field     text not null,
  digest    bytea not null,
  salt      bytea,
  text      text,
  erased_at timestamptz(3),
  primary key (action_id, field),
  check ((text is null) = (salt is null) and (text is null) = (erased_at is not null))
);
-- Finds the searches for one shopper, whichever list was searched.
create index action_texts_by_text on action_texts using hash (lower(text)) where text is not null;

-- The end of the chain. It begins with the digest of an empty text.
create table operator_chain (
  id     boolean primary key check (id),
  number bigint not null,
  hash   bytea not null
);
insert into operator_chain (id, number, hash) values (true, 0, sha256(''));

-- The ends of the chain that were posted to the operator's own address, one a day (UTC). An attacker
-- who rewrites the whole chain cannot change what was posted.
create table published_ends (
  on_date date primary key,
  at      timestamptz(3) not null,
  number  bigint not null,
  hash    bytea not null
);

-- Alerts for operators. Each is also posted to the operator's own address, if there is one.
create table alerts (
  id               uuid primary key,
  at               timestamptz(3) not null,
  -- The time when it was raised, on the merchant's clock, which may be ahead in a sandbox.
  merchant_at      timestamptz(3),
  kind             text not null,
  integration_id   uuid references integrations (id),
  merchant_id      uuid references merchants (id),
  -- The row that it is about, so that readers need not parse its text.
  subject_id       uuid,
  detail           text not null,
  -- Whether the detail quotes a shopper or a mail server. Such a detail is neither logged nor
  -- posted.
  is_private       boolean not null default false,
  posted_at        timestamptz(3),
  attempts            integer not null default 0,
  due_at           timestamptz(3),
  -- The operator whose action raised it; null if the service itself did.
  caused_by        text,
  caused_person_id uuid,
  -- An operator takes an alert and closes it, with a reason. A person's session proves who they are.
  -- A name stated at the command line proves nothing, and has no person.
  taken_at         timestamptz(3),
  taken_by         text,
  taken_person_id  uuid,
  closed_at        timestamptz(3),
  closed_by        text,
  closed_person_id uuid,
  close_reason     text
);
create index alerts_due on alerts (due_at) where due_at is not null;
create index alerts_by_time on alerts (at);
create index alerts_by_kind on alerts (kind, at, id);
create index alerts_open on alerts (at, id) where closed_at is null;
-- The service looks through the open alerts for those whose cause has ended.
create index alerts_open_by_id on alerts (id) where closed_at is null;
create index alerts_open_of_merchant on alerts (merchant_id, at, id)
  where closed_at is null and merchant_id is not null;
create index alerts_taken on alerts (at, id) where closed_at is null and taken_at is not null;
create index alerts_closed on alerts (at, id) where closed_at is not null;
create index alerts_of_merchant on alerts (merchant_id, at, id) where merchant_id is not null;
-- Finds the alerts about a row, so that they can be erased with it.
create index alerts_of_subject on alerts (subject_id) where subject_id is not null;

-- Notes that people wrote about a checkout. The code only appends; erasing a shopper deletes them.
create table notes (
  merchant_id uuid not null,
  id          uuid not null,
  checkout_id uuid not null,
  at          timestamptz(3) not null,
  person_id   uuid,
  name        text not null,
  -- Whether the service's staff wrote it. The merchant's people do not read it then.
  by_staff    boolean not null,
  text        text not null,
  primary key (checkout_id, id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);

-- The books: every movement once, written in the transaction of the row that caused it. A row moves
-- an amount from one account of a checkout to another, so all accounts always sum to zero.
-- Append-only.
create table postings (
  merchant_id uuid not null,
  id          uuid not null,
  checkout_id uuid not null,
  kind        text not null,
  debit       text not null,
  credit      text not null,
  amount      bigint not null check (amount > 0),
  currency    text not null,
  instalment  integer,
  refund_id   uuid,
  at          timestamptz(3) not null,
  dispute_id  uuid,
  -- The books of a checkout are added up in this order.
  primary key (checkout_id, merchant_id, id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  -- The kind with its two accounts. Each statement reads the checks of its tables anew: as a list of
  -- rows, this one was half of all that the statements of a payment read.
  check (kind || ' ' || debit || ' ' || credit = any ('{
    sold outstanding sale,
    authorised held issuer,
    captured collected outstanding,
    used issuer held,
    collected collected outstanding,
    voided issuer held,
    lapsed issuer held,
    cancelled cancelled outstanding,
    restored outstanding cancelled,
    refunded refunded collected,
    returned collected refunded,
    withdrawn disputed collected,
    reinstated collected disputed,
    reserved reserved refundable,
    released refundable reserved,
    gateway_fee gateway_fees clearing,
    gateway_fee_returned clearing gateway_fees}'))
);
-- The movements that make up the daily sums, in the order of their ids.
create index postings_in_order on postings (id)
  where kind in ('sold', 'captured', 'collected', 'cancelled', 'restored', 'refunded', 'returned',
    'withdrawn', 'reinstated');

-- The prices that a merchant pays for the service, from a local date on. Without terms, the service
-- does not settle the merchant's sales.
create table settlement_terms (
  merchant_id          uuid not null references merchants (id),
  from_on              date not null,
  -- `whole`: the order is owed once its first payment is collected. `as_collected`: each payment is
  -- owed once it is collected.
  funding              text not null check (funding in ('whole', 'as_collected')),
  basis_points         integer not null check (basis_points between 0 and 10000),
  fixed                bigint not null check (fixed >= 0),
  vat_basis_points     integer not null check (vat_basis_points between 0 and 10000),
  -- Whether the fee of a sale is kept or returned when the sale is refunded.
  refund_fee           text not null check (refund_fee in ('kept', 'returned')),
  -- This share of each day's sales is withheld for this many days.
  reserve_basis_points integer not null check (reserve_basis_points between 0 and 10000),
  reserve_days         integer not null check (reserve_days between 0 and 366),
  created_at           timestamptz(3) not null,
  primary key (merchant_id, from_on)
);

-- The merchants' books: every change of what a merchant is owed, once, written in the transaction of
-- the row that caused it. One row covers all accounts: `gross` is the change before fees, and `net`
-- is what remains of it after our fee and the VAT on that fee.
create table settlement_entries (
  merchant_id     uuid not null,
  id              uuid not null,
  kind            text not null check (kind = any ('{
                    sale, refund, refund_reversed, dispute, dispute_reversed, dispute_fee, reserve,
                    reserve_released, paid_out, payout_returned}')),
  checkout_id     uuid,
  -- The payment that it is about; null for an entry about the whole order.
  instalment      integer,
  refund_id       uuid,
  dispute_id      uuid,
  gross           bigint not null,
  fee             bigint not null,
  vat             bigint not null,
  net             bigint not null,
  currency        text not null,
  at              timestamptz(3) not null,
  -- When a reserve must be released, and the reserve that a release belongs to.
  release_on      date,
  reserve_id      uuid,
  -- The payout that was paid or returned.
  paid_payout_id  uuid,
  -- The payout that it is a line of. Set once.
  payout_id       uuid,
  line            integer,
  -- The number of the merchant's monthly statement that it is a line of. Set once.
  statement       integer,
  statement_line  integer,
  primary key (id, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id),
  foreign key (payout_id, merchant_id) references payouts (id, merchant_id),
  foreign key (paid_payout_id, merchant_id) references payouts (id, merchant_id),
  check (gross = fee + vat + net),
  check (fee = 0 or kind = any ('{sale,refund,refund_reversed,dispute_fee}')),
  check ((payout_id is null) = (line is null)),
  check ((statement is null) = (statement_line is null)),
  check ((kind = any ('{reserve,reserve_released,paid_out,payout_returned}'))
    = (checkout_id is null)),
  check ((kind = 'reserve') = (release_on is not null)),
  check ((kind = 'reserve_released') = (reserve_id is not null)),
  check ((kind = any ('{paid_out,payout_returned}')) = (paid_payout_id is not null)),
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
create unique index settlement_entries_statement_lines
  on settlement_entries (merchant_id, statement, statement_line) where statement is not null;
create index settlement_entries_to_state on settlement_entries (merchant_id, at, id)
  where statement is null;
create index settlement_entries_of_checkout on settlement_entries (checkout_id, merchant_id)
  where checkout_id is not null;
create index settlement_entries_open on settlement_entries (merchant_id, at, id)
  where payout_id is null and kind <> 'paid_out';
-- Almost all open entries are sales. This index finds the others without reading the sales.
create index settlement_entries_open_changes on settlement_entries (merchant_id, kind, at, id)
  where payout_id is null and kind not in ('sale', 'paid_out');
create index settlement_entries_reserves on settlement_entries (merchant_id, release_on)
  where kind = 'reserve';

-- The gateway's fees by its own transactions. Each is posted once.
create table gateway_fees (
  transaction_ref text not null,
  type            text not null,
  payment_ref     text not null,
  merchant_id     uuid not null,
  checkout_id     uuid not null,
  fee             bigint not null,
  currency        text not null,
  at              timestamptz(3) not null,
  -- Two gateways may use the same reference.
  gateway         text not null default 'main',
  primary key (transaction_ref, gateway, merchant_id),
  foreign key (checkout_id, merchant_id) references checkouts (id, merchant_id)
);
create index gateway_fees_of_checkout on gateway_fees (checkout_id, merchant_id);

-- The gateway's fees for the account itself, not for a payment (decision 0083). Each of its
-- transactions is one row, posted from `clearing` to `gateway_fees`. A negative fee was returned.
-- Append-only.
create table gateway_account_fees (
  transaction_ref text not null,
  type            text not null,
  fee             bigint not null check (fee <> 0),
  currency        text not null,
  at              timestamptz(3) not null,
  gateway         text not null default 'main',
  primary key (transaction_ref, gateway)
);
create index gateway_account_fees_at on gateway_account_fees (at);
