-- Every action of an operator carries a number and a hash over itself and the action before it.

alter table operator_actions add column number bigint;
alter table operator_actions add column hash bytea;
create unique index operator_actions_by_number on operator_actions (number);

-- The end of the chain. Actions from before the chain have no number; their digest is its start.
create table operator_chain (
  id          boolean primary key check (id),
  number      bigint not null,
  hash        bytea not null,
  first_count bigint not null,
  first_hash  bytea not null
);
insert into operator_chain (id, number, hash, first_count, first_hash)
select true, 0, digest, count, digest
from (
  select count(*) as count, sha256(coalesce(string_agg(sha256(convert_to(jsonb_build_array(
    id, (extract(epoch from at) * 1000)::bigint, operator, action, subject_id, details)::text,
    'UTF8')), ''::bytea order by at, id), ''::bytea)) as digest
  from operator_actions
) earlier;
