import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { approveRefund } from '../../src/refunds/review-refund.ts';
import { askRefund, assertBalanced, atGateway, planOf } from '../support/money.ts';
import {
  continueOn,
  gatewayEnv,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { backUp } from '../support/restore.ts';
import { startService } from '../support/service.ts';

// A database is restored from a backup while the gateway remembers everything. The restored service
// does again what the lost one did, and no money may move twice.

const checkouts = 20;
/** How long after the lost work the database is restored. The gateway forgets keys after a day. */
const delays = { 'within an hour': { minutes: 10 }, 'after three days': { days: 3 } };

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(() => paying.close());

/** Runs a test on a service that continues from a backup, at the time of now. */
async function restored(
  backup: { url: string; drop(): Promise<void> },
  work: (paying: Paying) => Promise<void>,
): Promise<void> {
  const service = await startService({
    databaseUrl: backup.url,
    clock: paying.clock,
    env: gatewayEnv(paying.gateway),
  });
  try {
    await work(continueOn(paying, service));
  } finally {
    await service.close();
    await backup.drop();
  }
}

async function bought(amount = 100_000): Promise<Shopper> {
  const shopper = await paying.shopper({ amount });
  assert.equal((await shopper.pay(3)).status, 'successful');
  return shopper;
}

/** The second payment is collected, or tried. */
async function passDueDate(shopper: Shopper): Promise<void> {
  const second = (await shopper.rows('instalments')).find(({ number }) => number === 2);
  await paying.pass(Temporal.Instant.from(second.due_at).add({ minutes: 1 }).toString());
}

for (const [name, delay] of Object.entries(delays)) {
  describe(`a service that is restored ${name}`, () => {
    test('charges no instalment twice', async () => {
      const shoppers: Shopper[] = [];
      for (let number = 0; number < checkouts; number += 1) shoppers.push(await bought());
      await paying.pass({ days: 20 });
      const backup = await backUp(paying.service.databaseUrl);
      await passDueDate(shoppers.at(-1) as Shopper);
      for (const shopper of shoppers) {
        assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
      }
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await again.work();
        for (const { id } of shoppers) {
          const shopper = again.open(id);
          assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
          assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
          await assertBalanced(again, shopper);
        }
      });
    });

    test('charges no instalment twice that was declined first', async () => {
      const shopper = await bought();
      await paying.pass({ days: 20 });
      const backup = await backUp(paying.service.databaseUrl);
      const path = '/v1/payment_intents';
      await paying.gateway.fault({
        fault: 'decline',
        method: 'POST',
        path,
        key_contains: shopper.id,
      });
      await passDueDate(shopper);
      await paying.pass({ days: 1 });
      assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await again.pass({ days: 5 });
        const one = again.open(shopper.id);
        assert.deepEqual(await planOf(one), ['1 collected', '2 collected', '3 scheduled']);
        assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
        await assertBalanced(again, one);
      });
    });

    test('captures and voids no hold twice', async () => {
      const [captured, voided] = [await bought(), await bought()];
      const backup = await backUp(paying.service.databaseUrl);
      const refund = await askRefund(paying, voided, 100_000);
      await approveRefund(paying.service.deps, 'nomsa', refund);
      await paying.pass({ hours: 20 });
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        const [one, other] = [again.open(captured.id), again.open(voided.id)];
        await again.work();
        assert.deepEqual(await planOf(one), ['1 collected', '2 scheduled', '3 scheduled']);
        assert.deepEqual(await atGateway(one), { taken: [33_334], held: [], returned: 0 });
        // The refund is lost with the database. Its hold is not, and the card takes its place.
        assert.deepEqual(await planOf(other), ['1 scheduled', '2 scheduled', '3 scheduled']);
        assert.deepEqual(await atGateway(other), { taken: [], held: [], returned: 0 });
        await assertBalanced(again, one);
        await assertBalanced(again, other);
      });
    });

    test('refunds nothing twice', async () => {
      const shoppers: Shopper[] = [];
      for (let number = 0; number < 5; number += 1) shoppers.push(await bought());
      await paying.pass({ days: 35 });
      const refunds: string[] = [];
      for (const shopper of shoppers) refunds.push(await askRefund(paying, shopper, 60_000));
      const backup = await backUp(paying.service.databaseUrl);
      const approve = async (service: Paying) => {
        for (const id of refunds) await approveRefund(service.service.deps, 'nomsa', id);
        await service.work();
      };
      await approve(paying);
      for (const shopper of shoppers) {
        assert.equal((await atGateway(shopper)).returned, 26_667);
      }
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await approve(again);
        for (const { id } of shoppers) {
          const shopper = again.open(id);
          assert.equal((await atGateway(shopper)).returned, 26_667);
          await assertBalanced(again, shopper);
        }
      });
    });
  });
}

describe('a shopper who pays again after a restore', () => {
  for (const [name, term, live] of [
    ['in the same term pays with the first hold', 3, [33_334]],
    ['in another term holds the new amount alone', 1, [100_000]],
  ] as const) {
    test(name, async () => {
      const shopper = await paying.shopper({ amount: 100_000 });
      const backup = await backUp(paying.service.databaseUrl);
      assert.equal((await shopper.pay(3)).status, 'successful');
      await restored(backup, async (again) => {
        const one = again.open(shopper.id);
        let page = await one.pay(term);
        if (page.status === 'open') page = await one.pay(term);
        assert.equal(page.status, 'successful');
        await again.pass({ minutes: 15 });
        assert.deepEqual(await one.live(), live);
        await assertBalanced(again, one);
      });
    });
  }
});

test('a charge that differs from what the gateway did under its key is not sent again', async () => {
  const shopper = await bought();
  await paying.pass({ days: 20 });
  const backup = await backUp(paying.service.databaseUrl);
  await paying.pass({ days: 15 });
  await restored(backup, async (again) => {
    const one = again.open(shopper.id);
    // In the restored history a refund comes first, so the second payment is smaller.
    const id = await askRefund(again, one, 50_000);
    await approveRefund(again.service.deps, 'nomsa', id);
    await again.pass({ minutes: 30 });
    assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
    assert.deepEqual((await planOf(one))[1], '2 scheduled -16667');
    const { rows } = await again.service.deps.database.pool.query(
      `select kind from alerts where subject_id = $1`,
      [shopper.id],
    );
    assert.deepEqual(rows, [{ kind: 'gateway_trouble' }]);
  });
});
