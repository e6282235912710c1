import { linkMailsMax } from '#purchases/payment-links/payment-link.ts';
import type { Invariant } from './invariant.ts';

export const messageInvariants: Invariant[] = [
  {
    name: 'N1',
    description: 'every message was caused by a change that was committed',
    sql: `
      select m.id, m.kind, m.about
      from messages m
      join checkouts c on c.id = m.checkout_id and c.merchant_id = m.merchant_id
      left join instalments i on i.checkout_id = m.checkout_id and i.merchant_id = m.merchant_id
        and i.number = (m.facts->>'instalment')::integer
      where c.status <> 'successful'
        or m.kind = 'charged' and i.status is distinct from 'collected'
        or m.kind = 'card_replaced' and not exists (
          select 1 from payment_attempts a
          where a.checkout_id = m.checkout_id and a.merchant_id = m.merchant_id
            and 'attempt ' || a.number = split_part(m.about, '#', 1)
            and a.consent is not null and a.status in ('charged', 'verified'))
        or m.kind = 'declined' and not exists (
          select 1 from collections k
          where k.checkout_id = m.checkout_id and k.merchant_id = m.merchant_id
            and k.instalment = i.number
            and k.status = case m.facts->>'uncharged' when 'lapsed' then 'lapsed' else 'declined' end)
        or m.kind = 'refunded' and not exists (
          select 1 from refund_requests r
          where r.checkout_id = m.checkout_id and r.merchant_id = m.merchant_id
            and starts_with(m.about, 'refund ' || r.id) and r.completed_at is not null)`,
  },
  {
    name: 'N1',
    description: `a link that was mailed is for one payment, and was mailed at most ${linkMailsMax} times`,
    sql: `
      select m.payment_link_id, count(*) as mails
      from messages m
      left join payment_links l on l.id = m.payment_link_id and l.merchant_id = m.merchant_id
      where m.payment_link_id is not null
      group by m.merchant_id, m.payment_link_id
      having count(*) > ${linkMailsMax} or bool_or(l.reusable is distinct from false)`,
  },
  {
    name: 'N1',
    description: 'a message counts as sent exactly when the mail server accepted it',
    sql: `
      select m.id, m.status
      from messages m
      where (m.status = 'sent') <> exists (
        select 1 from message_attempts a
        where a.message_id = m.id and a.merchant_id = m.merchant_id and a.outcome = 'sent')`,
  },
];
