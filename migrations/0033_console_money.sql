-- concurrently
-- What the console lists of payouts, disputes and the reconciliation's findings: each page is a range
-- of an index, of all merchants or of one.
create index concurrently if not exists payouts_of_merchant
  on payouts (merchant_id, created_at, id);
create index concurrently if not exists disputes_of_merchant
  on disputes (merchant_id, created_at, id);
create index concurrently if not exists disputes_by_status
  on disputes (status, created_at, id);
create index concurrently if not exists alerts_by_kind on alerts (kind, at, id);
