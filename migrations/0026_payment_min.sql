-- The smallest payment that the card gateway takes in the territory's currency, in cents. Ten rand
-- is a little more than the half dollar that Stripe asks for.
alter table territories add column payment_min integer not null default 1 check (payment_min > 0);
update territories set payment_min = 1000 where currency = 'ZAR';
