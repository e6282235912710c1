-- When the shopper's personal data was erased. Null: it was not.

alter table checkouts add column erased_at timestamptz(3);

-- Finds the alerts about a row, to erase them with it.
create index alerts_of_subject on alerts (subject_id) where subject_id is not null;
