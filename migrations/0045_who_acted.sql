-- The person whose session proved who acted; null: a command, whose name for the operator is a claim,
-- or a version before this one.
alter table alerts add column taken_person_id uuid;
alter table alerts add column closed_person_id uuid;
alter table bank_accounts add column proposed_person_id uuid;
alter table bank_accounts add column confirmed_person_id uuid;
