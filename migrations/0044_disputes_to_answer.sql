-- concurrently
-- The console counts the disputes that wait for evidence, of all merchants or of one. The indexes by
-- status do not know whether evidence was submitted, so the count read the rows themselves.
create index concurrently if not exists disputes_to_answer on disputes (created_at, id)
  where status = 'needs_response' and submitted_at is null;
create index concurrently if not exists disputes_to_answer_of_merchant
  on disputes (merchant_id, created_at, id)
  where status = 'needs_response' and submitted_at is null;
