-- How the shopper's bank authenticated a later payment that the shopper made in person (3-D Secure).
-- Null: it was not asked, nothing was charged, or the card was only verified.
alter table shopper_attempts add column authentication jsonb;
