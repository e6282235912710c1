-- concurrently
-- An operator finds a card or a payment that the shopper used on the plan page, a charge by its id,
-- and a merchant by the beginning of its name. The order of bytes makes a beginning a range.
create index concurrently if not exists shopper_attempts_by_last4
  on shopper_attempts (card_last4, merchant_id, checkout_id desc) where card_last4 is not null;
create index concurrently if not exists shopper_attempts_by_payment_ref
  on shopper_attempts (payment_ref) where payment_ref is not null;
create index concurrently if not exists collections_by_id on collections (id);
create index concurrently if not exists merchants_by_name
  on merchants ((lower(name) collate "C"), id);
