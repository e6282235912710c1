import type { Invariant } from './invariant.ts';

export const operatorInvariants: Invariant[] = [
  {
    name: 'A2',
    description: 'a refund that was reviewed has the action of the operator who reviewed it',
    sql: `
      select r.id, r.status
      from refund_requests r
      join checkouts c on c.id = r.checkout_id and c.merchant_id = r.merchant_id
      join integrations i on i.id = c.integration_id
      where (r.approved_at is not null and i.refund_mode = 'manual'
          or r.approved_at is null and r.status = 'failed')
        and not exists (select 1 from operator_actions o where o.subject_id = r.id
          and o.action = case when r.approved_at is null then 'refunds decline'
            -- Asking for a refund that needs no second person also approves it.
            when o.action = 'refunds create' and r.approved_at = r.created_at then 'refunds create'
            else 'refunds approve' end)
        and not exists (select 1 from operator_actions o where o.subject_id = r.id
          -- A refund that was recorded after a restore was reviewed before the restore.
          and (o.action in ('refunds retry', 'gateway record')
            or o.action = 'refunds create' and r.requested_by_name is not null))
        -- An integration may have been automatic when these refunds were requested, which approved
        -- them at once.
        and not (r.approved_at = r.created_at
          and exists (select 1 from operator_actions o where o.subject_id = i.id
            and o.action = 'integrations refunds'))`,
  },
  {
    name: 'A2',
    description: 'the person who asked for a refund did not approve it',
    sql: `
      select r.id, r.status
      from refund_requests r
      join operator_actions o on o.subject_id = r.id
      where o.action = 'refunds approve' and o.person_id = r.requested_by`,
  },
  {
    name: 'A6',
    description: 'no merchant belongs to two live accesses of one person',
    // A merchant may invite a person of the service's staff, who has all merchants already. That is
    // not a violation until the invitation is accepted.
    sql: `
      select p.id, o.id as other_id
      from people p
      join people o on o.id > p.id
        and coalesce(o.identity_id, o.id) = coalesce(p.identity_id, p.id)
      where p.revoked_at is null and o.revoked_at is null
        and (p.merchant_ids && o.merchant_ids
          or p.merchant_ids is null and o.registered_at is not null
          or o.merchant_ids is null and p.registered_at is not null)`,
  },
];
