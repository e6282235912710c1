import { captureTime, collectionTime } from '../../instalments/instalment.ts';
import type { Invariant } from './invariant.ts';

export const instalmentInvariants: Invariant[] = [
  {
    name: 'M1',
    says: 'a successful checkout has as many instalments as the shopper chose, and they sum to its amount; any other checkout has none',
    sql: (within) => `
      select c.id, c.status, count(i.number) as instalments, sum(i.amount) as sum
      from checkouts c left join instalments i on i.checkout_id = c.id and i.merchant_id = c.merchant_id
        and ${within('i.checkout_id')}
      where ${within('c.id')}
      group by c.id, c.merchant_id
      having case when c.status = 'successful' then
          count(i.number) <> c.number_of_payments
          or min(i.number) <> 1 or max(i.number) <> c.number_of_payments
          or sum(i.amount) <> c.amount
          or not c.number_of_payments = any (c.terms)
          or max(i.amount) filter (where i.number > 1) > min(i.amount) filter (where i.number = 1)
          or max(i.amount) filter (where i.number > 1) <> min(i.amount) filter (where i.number > 1)
          or max(i.amount) filter (where i.number = 1)
             - min(i.amount) filter (where i.number > 1) >= c.number_of_payments
        else count(i.number) > 0 end`,
  },
  {
    name: 'M1',
    says: 'instalments fall due month by month from the local date of the purchase, in the currency of their checkout',
    sql: (within) => `
      select i.checkout_id, i.number, i.due_on, c.completed_at
      from instalments i
      join checkouts c on c.id = i.checkout_id and c.merchant_id = i.merchant_id
      join merchants m on m.id = c.merchant_id
      join territories t on t.code = m.territory
      where ${within('c.id')} and ${within('i.checkout_id')} and (i.currency <> c.currency
        or i.due_on is distinct from ((c.completed_at at time zone t.time_zone)::date
          + (i.number - 1) * interval '1 month')::date)`,
  },
  {
    name: 'M5',
    says: 'an instalment is collected exactly when one collection brought what refunds had left of it',
    sql: (within) => `
      select i.checkout_id, i.number, i.status, i.amount - i.reduced as due, sum(k.amount) as brought
      from instalments i left join collections k
        on k.checkout_id = i.checkout_id and k.instalment = i.number
        and k.merchant_id = i.merchant_id and k.status = 'collected' and ${within('k.checkout_id')}
      where ${within('i.checkout_id')}
      group by i.checkout_id, i.number, i.merchant_id
      having count(k.id) <> case when i.status = 'collected' then 1 else 0 end
        or i.status = 'collected' and (sum(k.amount) <> i.amount - i.reduced
          or min(k.payment_ref) is distinct from i.payment_ref)`,
  },
  {
    name: 'M5',
    says: 'no collection began before its instalment was due, except by the shopper',
    sql: (within) => `
      select k.checkout_id, k.instalment, k.number, k.created_at, i.due_on
      from collections k
      join instalments i on i.checkout_id = k.checkout_id and i.number = k.instalment
        and i.merchant_id = k.merchant_id
      join merchants m on m.id = k.merchant_id
      join territories t on t.code = m.territory
      where ${within('k.checkout_id')} and ${within('i.checkout_id')} and k.kind <> 'shopper'
        and k.created_at < (case k.kind when 'capture' then i.due_on + 1 + time '${captureTime}'
          else i.due_on + time '${collectionTime}' end) at time zone t.time_zone`,
  },
];
