-- concurrently
-- An operator finds a payout by the reference of its line at the bank.
create index concurrently if not exists payouts_by_reference on payouts (reference, merchant_id);
