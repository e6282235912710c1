import assert from 'node:assert/strict';
import { confirmAccount, proposeAccount } from '#purchases/payouts/set-bank-account.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { fundings } from '#record/ledger/settlement.ts';
import type { EventObject } from '../../test-gateway/objects/event.ts';
import { messageOf } from '../../test-gateway/webhooks.ts';
import { wholeTerms } from '../support/money.ts';
import type { Paying } from '../support/payments.ts';
import type { Account } from '../support/service.ts';
import { bankAccount, type Ordered } from '../support/settlement.ts';
import { isClosed } from './merchant-server.ts';
import type { Scene, Work } from './play.ts';
import type { Process } from './stage.ts';
import type { Story } from './story.ts';
import { webhookSecret } from './world.ts';

export const fundingOf = ({ day }: Story) => fundings[day % fundings.length] ?? 'whole';

/** Gives this merchant terms, and a bank account that two people entered. */
export async function beginSettlement(
  { service: { deps } }: Paying,
  { merchant: { id } }: Account,
  story: Story,
): Promise<void> {
  const reserve = story.day % 3 === 0 ? { reserve_basis_points: 1_000, reserve_days: 30 } : {};
  await setTerms(deps, 'nomsa', id, { ...wholeTerms, funding: fundingOf(story), ...reserve });
  await proposeAccount(deps, 'nomsa', id, bankAccount);
  await confirmAccount(deps, 'sipho', id, { number: 1, ...bankAccount });
  if (story.theme === 'payouts') return;
  // Only stories about payouts have monthly statements.
  const { pool } = deps.database;
  await pool.query({
    ...{ name: 'story months', text: 'delete from statement_months where merchant_id = $1' },
    values: [id],
  });
}

/** Plays the cardholder's bank, and the gateway that announces what the bank does. */
export function createIssuer({ paying, account, say, tell }: Scene) {
  const { gateway, service } = paying;
  const { pool } = service.deps.database;
  const events: EventObject[] = [];
  const decided = new Set<string>();

  async function paymentRefs(): Promise<string[]> {
    const { rows } = await pool.query({
      name: 'story payments',
      text: `select distinct payment_ref from instalments
             where merchant_id = $1 and status = 'collected' order by payment_ref`,
      values: [account.merchant.id],
    });
    return rows.map(({ payment_ref }) => payment_ref);
  }

  /** The gateway's disputes of the checkout that no one has decided. */
  async function listOpen(): Promise<{ id: string; status: string }[]> {
    const found: { id: string; status: string }[] = [];
    for (const payment_intent of await paymentRefs()) {
      const { body } = await gateway.call('GET', '/v1/disputes', { payment_intent });
      found.push(...body.data);
    }
    return found.filter(({ status }) => !/won|lost|closed/.test(status));
  }

  async function resolve(id: string, outcome: string, isWithheld = false): Promise<void> {
    // Hyperswitch's protocol does not say when the money comes back.
    const withheld = String(isWithheld && gateway.protocol === 'stripe');
    const form = { outcome, withheld };
    const { status } = await gateway.call('POST', `/_test/disputes/${id}/resolve`, form);
    if (outcome !== 'escalated') decided.add(id);
    say(`issuer: ${outcome}${status === 200 ? '' : ', too late'}`);
  }

  /** The events since the last look. The gateway sends them in any order, some twice. */
  async function listEvents(): Promise<EventObject[]> {
    const { body } = await gateway.call('GET', '/v1/events', { limit: '100' });
    const refs = await paymentRefs();
    const known = new Set(events.map(({ id }) => id));
    const found = (body.data as EventObject[]).filter(
      ({ id, data }) => !known.has(id) && refs.includes(String(data.object.payment_intent)),
    );
    events.push(...found.toReversed());
    return events;
  }

  return {
    isPaid: async () => (await paymentRefs()).length > 0,
    /** Returns false if there is no payment to dispute. */
    async dispute(pick: number): Promise<boolean> {
      const refs = await paymentRefs();
      const payment_intent = refs[pick % Math.max(1, refs.length)];
      if (payment_intent === undefined) return false;
      const reason = pick % 4 === 3 ? 'inquiry' : 'fraudulent';
      const form = { payment_intent, reason };
      const { status } = await gateway.call('POST', '/_test/disputes', form);
      say(`cardholder disputes a payment${status === 200 ? '' : ' again'}`);
      return true;
    },
    /** Lets the card's bank decline the next refund, at once or an hour later. */
    async refuseRefund(): Promise<void> {
      say('bank: declines the next refund');
      const path = gateway.protocol === 'stripe' ? '/v1/refunds' : '/refunds';
      await gateway.fault({ fault: 'decline', method: 'POST', path, times: 1 });
    },
    async decide(pick: number): Promise<void> {
      const open = await listOpen();
      const one = open[pick % Math.max(1, open.length)];
      if (!one) return;
      const isInquiry = one.status.startsWith('warning_');
      const outcome = ['won', 'lost', isInquiry ? 'escalated' : 'lost'][pick % 3] ?? 'won';
      await resolve(one.id, outcome, pick % 2 === 1);
    },
    /** Decides every dispute that the service knows of. The money of a won one may come late. */
    async decideAll(pick: number): Promise<void> {
      const { rows } = await pool.query<{ dispute_ref: string; status: string }>({
        name: 'story disputes',
        text: `select dispute_ref, status from disputes
               where merchant_id = $1 and due_at is not null order by id`,
        values: [account.merchant.id],
      });
      for (const { dispute_ref, status } of rows) {
        if (status === 'won') await resolve(dispute_ref, 'reinstated');
        else if (!decided.has(dispute_ref)) {
          await resolve(dispute_ref, pick % 2 === 0 ? 'won' : 'lost', pick % 4 === 0);
        }
      }
    },
    /**
     * The gateway announces an event: a new one, an old one, or one that it has announced before.
     */
    async announce(pick: number): Promise<Work | null> {
      const all = await listEvents();
      const event = all[pick % Math.max(1, all.length)];
      const protocol = gateway.protocol;
      const message = event && messageOf({ url: '', secret: webhookSecret, protocol }, event);
      if (!event || !message) return null;
      const run = async ({ app, died }: Process): Promise<void> => {
        const answer = await Promise.race([
          app
            .inject({
              ...{ method: 'POST', url: '/gateway/events' },
              headers: { 'content-type': 'application/json', ...message.headers },
              payload: message.body,
            })
            .catch(isClosed),
          died,
        ]);
        if (answer === null) return;
        tell(`gateway hears: ${answer.statusCode}`);
        // The gateway sends an event again unless the answer is a success.
        assert.ok([200, 500, 503].includes(answer.statusCode), answer.body);
      };
      return { about: `announces ${event.type} (event ${all.indexOf(event) + 1})`, run };
    },
  };
}

/** Records the payouts of exports whose answers were lost, as their rows show. */
export async function recountOrders(
  { service }: Paying,
  { merchant }: Account,
  ordered: Ordered,
): Promise<void> {
  const { rows } = await service.deps.database.pool.query(
    'select id, amount from payouts where merchant_id = $1 and export_id is not null',
    [merchant.id],
  );
  for (const { id, amount } of rows) ordered.set(id, ordered.get(id) ?? amount);
}
