-- What the console lists of payouts, disputes and the reconciliation's findings: each page is a range
-- of an index, of all merchants or of one.
create index payouts_of_merchant on payouts (merchant_id, created_at, id);
create index disputes_of_merchant on disputes (merchant_id, created_at, id);
create index disputes_by_status on disputes (status, created_at, id);
create index alerts_by_kind on alerts (kind, at, id);
