-- The evidence of a dispute as an operator staged it: what is submitted is exactly this.
alter table disputes add column staged_evidence jsonb;
-- The SHA-256 of the fields, by which an operator names what they looked at.
alter table disputes add column staged_hash text;
-- When its submission began. Since then the evidence cannot be staged anew.
alter table disputes add column submitting_at timestamptz(3);
-- Until when another operator's submission is waited for, on the real clock.
alter table disputes add column submitting_until timestamptz(3);
