import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { findViolations, type Violation } from '#checks/invariants/invariants.ts';
import { prefixOf } from '#gateway/adapters/read-settings.ts';
import { mainGateway } from '#gateway/gateway-name.ts';
import type { Protocol } from '#gateway/settings.ts';
import type { Deps } from '#main.ts';
import { useMerchantApi } from '#merchants/integrations/merchant-api.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { deadlineSeconds } from '#purchases/callbacks/delivery/limits.ts';
import { checkoutRoutes } from '#purchases/checkouts/checkout.routes.ts';
import { gatewayEventRoutes } from '#purchases/disputes/gateway-event.routes.ts';
import { refundRoutes } from '#purchases/refunds/refund.routes.ts';
import { pageRoutes } from '#purchases/shoppers/page.routes.ts';
import { paymentRoutes } from '#purchases/shoppers/payment.routes.ts';
import { planRoutes } from '#purchases/shoppers/plan.routes.ts';
import { findNodes } from '../support/database-server.ts';
import { type Paying, startPaying } from '../support/payments.ts';
import { type Account, createTestDatabase } from '../support/service.ts';
import { type StoryClock, storyRandom } from './clock.ts';
import {
  connectInAnyTime,
  createStage,
  named,
  neverStopped,
  type Process,
  type Stage,
} from './stage.ts';

// One database, one process and one gateway of each protocol, for all stories of a run.

/** The tables whose statuses are counted. */
const moving = [
  ...['checkouts', 'payment_attempts', 'instalments', 'collections'],
  ...['refund_requests', 'refund_parts', 'messages', 'callbacks', 'disputes', 'payouts'],
];

/** The secret with which the gateways sign their events. */
export const webhookSecret = 'whsec_of_the_stories';

export type World = {
  stage: Stage;
  clock: StoryClock;
  /** The service and the shoppers with a gateway of this protocol. */
  paying(protocol: 'stripe' | 'hyperswitch'): Promise<Paying>;
  begin(seed: number): void;
  incarnate(paying: Paying): Promise<Process>;
  /** The rows of one merchant that violate an invariant. */
  violations(account: Account): Promise<Violation[]>;
  /** Removes a merchant from the gateway, and its due days: they would slow down later stories. */
  leave(paying: Paying, account: Account): Promise<void>;
  /** The moves of statuses since the last call, each as often as it happened. */
  takeTransitions(): Promise<string[]>;
  close(): Promise<void>;
};

export async function startWorld(): Promise<World> {
  const database = await createTestDatabase();
  const given: { clock?: StoryClock } = {};
  const random = storyRandom({ now: () => (given.clock as StoryClock).now() });
  const stage = createStage(database.url, random);
  const { clock } = stage;
  given.clock = clock;
  const { pool } = stage.shared;
  const isCounted = !(await findNodes()).hasCitus;
  if (isCounted) await countTransitions(pool);
  const judge = await scopeToMerchant(pool);
  const scoped = judge.client;
  const isSound = await joinInvariants(scoped, timestamp(clock.now()));
  const playing = new Map<string, Promise<Paying>>();
  return {
    stage,
    clock,
    begin: (seed) => random.begin(seed),
    paying(protocol) {
      const known = playing.get(protocol);
      if (known) return known;
      const started = startPaying({
        ...{ protocol, clock, random, databaseUrl: database.url, gatewayTimeoutMs: 600_000 },
        callbackSender: { deadlineMilliseconds: deadlineSeconds * 1000 },
        env: eventSettings(protocol),
      }).then((paying) => {
        const { deps } = paying.service;
        const { sendCallback } = deps;
        deps.money = neverStopped;
        connectInAnyTime(deps.database.pool);
        deps.sendCallback = (message) => stage.post(sendCallback(message));
        deps.database.pool.on('acquire', (client) => stage.note(client));
        return paying;
      });
      playing.set(protocol, started);
      return started;
    },
    incarnate: ({ gateway, receiver }) =>
      stage.incarnate({ gateway, receiver, env: eventSettings(gateway.protocol) }, serve),
    async violations(account) {
      const now = timestamp(clock.now());
      const chosen = scoped.query({
        name: 'story merchant',
        text: `select set_config('story.merchant', $1, false),
                 set_config('story.integration', $2, false)`,
        values: [account.merchant.id, account.id],
      });
      // Both statements travel together.
      const [isFine] = await Promise.all([isSound(now), chosen]);
      return isFine ? [] : await findViolations({ pool: scoped }, now);
    },
    async leave({ gateway }, { merchant }) {
      await gateway.call('POST', '/_test/forget', { merchant: merchant.id });
      for (const table of ['payout_days', 'statement_months']) {
        await pool.query(`delete from ${table} where merchant_id = $1`, [merchant.id]);
      }
    },
    async takeTransitions() {
      if (!isCounted) return [];
      const { rows } = await pool.query('delete from story_transitions returning what');
      return rows.map(({ what }) => what);
    },
    async close() {
      await judge.drop();
      for (const paying of playing.values()) await (await paying).close();
      await stage.close();
      await database.drop();
    },
  };
}

const eventSettings = (protocol: Protocol) => ({
  [`${prefixOf(mainGateway)}${protocol.toUpperCase()}_WEBHOOK_SECRET`]: webhookSecret,
});

const serve = async (api: FastifyInstance, deps: Deps) => {
  const merchantRoutes = async (scope: FastifyInstance) => {
    useMerchantApi(scope, deps);
    await checkoutRoutes(scope, deps);
    await refundRoutes(scope, deps);
  };
  const all = [merchantRoutes, gatewayEventRoutes, pageRoutes, paymentRoutes, planRoutes];
  for (const routes of all) api.register(named((scope: FastifyInstance) => routes(scope, deps)));
};

async function countTransitions(pool: pg.Pool): Promise<void> {
  await pool.query(`
    create unlogged table story_transitions (what text);
    create function note_transition() returns trigger language plpgsql as $$ begin
      insert into story_transitions values (tg_table_name || ': ' ||
        case tg_op when 'INSERT' then '' else old.status || ' ' end || '→ ' || new.status);
      return null;
    end $$;
    ${moving
      .map(
        (table) => `
    create trigger story_insert after insert on ${table}
      for each row execute function note_transition();
    create trigger story_update after update of status on ${table}
      for each row when (old.status is distinct from new.status)
      execute function note_transition();`,
      )
      .join('')}`);
}

/**
 * A connection that sees the rows of one merchant alone, by row level security. So the invariants
 * cost the same after ten thousand stories as after one.
 */
async function scopeToMerchant(
  pool: pg.Pool,
): Promise<{ client: pg.PoolClient; drop(): Promise<void> }> {
  const client = await pool.connect();
  const { rows } = await client.query<{ name: string; columns: string[] }>(
    `select table_name as name, array_agg(column_name::text) as columns
     from information_schema.columns where table_schema = 'public' group by 1`,
  );
  const scoped = rows.flatMap(({ name, columns }) => {
    if (name === 'merchants') return [{ name, key: 'id', setting: 'merchant' }];
    // An action belongs to the merchant of the person who took it. Our staff have no merchant.
    if (name === 'operator_actions') return [];
    if (columns.includes('merchant_id')) return [{ name, key: 'merchant_id', setting: 'merchant' }];
    if (!columns.includes('integration_id')) return [];
    return [{ name, key: 'integration_id', setting: 'integration' }];
  });
  const role = `judge_${randomBytes(8).toString('hex')}`;
  await client.query(`
    create role ${role};
    grant select on all tables in schema public to ${role};
    ${scoped
      .map(
        ({ name, key, setting }) => `alter table ${name} enable row level security;
    create policy story on ${name} to ${role}
      using (${key} = current_setting('story.${setting}')::uuid);`,
      )
      .join('\n')}
    set role ${role}`);
  return {
    client,
    async drop() {
      await client.query(`reset role; drop owned by ${role}; drop role ${role}`);
      client.release();
    },
  };
}

/**
 * Joins the statements of all invariants into one, and returns a function that runs it and says
 * whether all hold. Sending a hundred statements would take longer than checking the few rows.
 */
async function joinInvariants(
  client: pg.PoolClient,
  at: Timestamp,
): Promise<(now: Timestamp) => Promise<boolean>> {
  const asked: string[] = [];
  const listener = {
    query: async ({ text }: { text: string }) => {
      asked.push(text);
      return { rows: [] };
    },
  };
  await findViolations({ pool: listener as unknown as pg.PoolClient }, at);
  const all = asked.map((text) => `exists (${text})`).join(' or ');
  return async (now) => {
    const text = `select ${all} as is_violated where $1::timestamptz is not null`;
    const { rows } = await client.query({ name: 'story invariants', text, values: [now] });
    return rows[0].is_violated === false;
  };
}
