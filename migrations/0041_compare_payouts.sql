-- After a restore the bank may have paid a payout that this database does not know to be exported.
-- Since then an operator must compare it with the bank; null: it need not be compared.
alter table payouts add column compare_since timestamptz(3);
-- What was sold before this time, on the merchant's clock, may be in a payout that was lost.
alter table payout_days add column compare_before timestamptz(3);
