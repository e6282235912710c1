-- The language that the shopper chose, for the hosted page and for messages. Null: none was chosen.
alter table checkouts add column language text check (language in ('en', 'af', 'zu'));

-- The term that the hosted page selects at first. Null: the shortest.
alter table merchants add column preselected_term integer check (preselected_term > 0);
