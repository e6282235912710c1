-- What the card schemes want to be kept of a payment, and what a merchant may say on its page.

-- The last month in which the card works, `2027-03`. Null: the gateway did not say, or it was erased.
alter table payment_attempts add column card_expires text check (card_expires ~ '^\d{4}-\d{2}$');
alter table stored_cards add column expires text check (expires ~ '^\d{4}-\d{2}$');

-- How the shopper's bank authenticated the first payment (3-D Secure). Null: it was not asked.
alter table payment_attempts add column authentication jsonb;

-- Why a card was declined, in the codes of the gateway and of the card network.
alter table payment_attempts add column decline_code text;
alter table payment_attempts add column network_decline_code text;
alter table collections add column decline_code text;
alter table collections add column network_decline_code text;

-- What the shopper's card statement calls the merchant. Null: the beginning of its name.
alter table merchants add column short_name text;

-- Whether the hosted page may say that paying in instalments costs the shopper nothing.
alter table merchants add column no_fees boolean not null default false;
