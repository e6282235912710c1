-- concurrently
-- `audit list --operator` reads what one operator did, the newest first.
create index concurrently if not exists operator_actions_of_operator
  on operator_actions (operator, at, id);
-- The console lists disputes and payouts of one merchant in one status, and alerts that an operator
-- took. None of these tables is written by a create.
create index concurrently if not exists disputes_by_status_of_merchant
  on disputes (merchant_id, status, created_at, id);
create index concurrently if not exists payouts_by_status_of_merchant
  on payouts (merchant_id, status, created_at, id);
create index concurrently if not exists alerts_taken on alerts (at, id)
  where closed_at is null and taken_at is not null;
create index concurrently if not exists alerts_open_of_merchant on alerts (merchant_id, at, id)
  where closed_at is null and merchant_id is not null;
