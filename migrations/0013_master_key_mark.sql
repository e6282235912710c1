-- Sealed under the master key of the first process that used this database. Until there are signing
-- keys it is how the next process knows whether it has the same master key.
alter table installation add column master_key_mark bytea;
