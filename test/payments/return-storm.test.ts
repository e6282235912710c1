import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { OutcomeUnknown } from '#gateway/gateway.ts';
import { limitGateway } from '#gateway/limit-gateway.ts';
import { systemClock } from '#platform/shared/clock.ts';
import type { Fault } from '../../test-gateway/faults.ts';
import { merchantAt } from '../support/gateway.ts';
import { assertSound, challengeCard, type Paying, startPaying } from '../support/payments.ts';
import { log } from '../support/service.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(() => paying.close());

const lookUp = { method: 'GET', path: '/v1/payment_intents/:id' };

/** Counts requests at the gateway: a fault that strikes them all and changes nothing. */
async function countRequests(request: Partial<Fault>): Promise<() => Promise<number>> {
  await paying.clearFaults();
  await paying.gateway.fault({ fault: 'latency', ms: 0, times: 1_000_000, ...request });
  return async () => {
    const { body } = await paying.gateway.call('GET', '/_test/faults');
    return body.data[0].struck;
  };
}

test('however many times the bank sends the browser back, the gateway is asked once a second', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(3, { card: challengeCard });
  const asked = await countRequests(lookUp);
  const begin = performance.now();
  const browser = async () => {
    for (let returns = 0; returns < 6; returns += 1) {
      assert.equal((await shopper.send('GET', 'return')).status, 303);
    }
  };
  await Promise.all(Array.from({ length: 2 }, browser));
  const seconds = (performance.now() - begin) / 1000;
  const count = await asked();
  assert.ok(count >= 1 && count <= 2 + seconds, `${count} look-ups in ${seconds} seconds`);
  // The last return sees what the shopper did before it.
  await shopper.decide('approve');
  assert.equal((await shopper.comeBack()).status, 'successful');
  await paying.work();
  await assertSound(paying);
});

describe('all users of the gateway in a process share', () => {
  test('one budget of requests', async () => {
    const asked = await countRequests(lookUp);
    const limited = limitGateway(
      paying.gateway.gateway,
      { clock: systemClock, log },
      { requestsPerSecond: 20 },
    );
    const begin = performance.now();
    const calls = Array.from({ length: 400 }, () => limited.payment(merchantAt(), 'pi_unknown'));
    const answers = await Promise.allSettled(calls);
    const seconds = (performance.now() - begin) / 1000;
    const reasons = answers.map((one) => (one.status === 'rejected' ? String(one.reason) : ''));
    const refused = reasons.filter((reason) => reason.includes('budget')).length;
    const count = await asked();
    assert.equal(count + refused, 400);
    assert.ok(refused > 100, `${refused} had to wait for too long`);
    assert.ok(count <= 20 * seconds + 10, `${count} requests in ${seconds} seconds`);
  });

  test('nothing of it with events that anyone may post', async () => {
    const { gateway } = paying.gateway;
    // No time passes, so a call that has to wait is seen.
    const sleep = () => assert.fail('a call waits');
    const clock = { ...systemClock, monotonic: () => 0, sleep };
    const limited = limitGateway(gateway, { clock, log }, { requestsPerSecond: 20 });
    for (let event = 0; event < 200; event += 1) {
      assert.equal(await limited.readEvent(Buffer.from('{}'), 'forged'), null);
    }
    await assert.rejects(limited.payment(merchantAt(), 'pi_unknown'), /status 404/);
    await assert.rejects(limited.refundStatus(merchantAt(), 're_unknown'), /status 404/);
  });

  test('the pause that the gateway asks for when it has too many requests, within bounds', async () => {
    const { gateway } = paying.gateway;
    await paying.clearFaults();
    await paying.gateway.fault({ ...lookUp, fault: 'too_many' });
    const answer = await gateway.payment(merchantAt(), 'pi_unknown').catch((error) => error);
    assert.deepEqual([answer.why, answer.retryAfterMs], ['too_many', 1_000]);
    for (const [asked, paused] of [
      [null, 1_000],
      [0, 1_000],
      [4_000, 4_000],
      [3_600_000, 30_000],
    ] as const) {
      const waits: number[] = [];
      const sleep = async (milliseconds: number) => void waits.push(milliseconds);
      const clock = { ...systemClock, monotonic: () => 0, sleep };
      const busy = () => Promise.reject(new OutcomeUnknown('busy', 'too_many', asked));
      const limited = limitGateway(
        { ...gateway, listRecords: busy },
        { clock, log },
        { requestsPerSecond: 10 },
      );
      const read = () => limited.listRecords('refunds', { from: null, to: null, after: null });
      await assert.rejects(read(), /busy/);
      await assert.rejects(read(), /busy/);
      assert.deepEqual(waits, [paused]);
    }
  });

  test('one circuit breaker, which lets single probes pass until the gateway answers again', async () => {
    const call = { ...lookUp, fault: 'error_before' as const };
    const asked = await countRequests(call);
    const limited = limitGateway(
      paying.gateway.gateway,
      { clock: systemClock, log },
      { requestsPerSecond: null, failuresMax: 5 },
    );
    const ask = async () => {
      const answer = await limited.payment(merchantAt(), 'pi_unknown').catch(String);
      return JSON.stringify(answer);
    };
    for (let failure = 0; failure < 5; failure += 1) assert.match(await ask(), /status 500/);
    const begin = performance.now();
    let refusals = 0;
    // Another call of another kind is refused as well.
    await assert.rejects(limited.refundStatus(merchantAt(), 're_unknown'), /was not asked/);
    while (performance.now() - begin < 1_500) {
      if (/was not asked/.test(await ask())) refusals += 1;
      await systemClock.sleep(5);
    }
    assert.ok(refusals > 10);
    assert.ok((await asked()) <= 7, 'one probe a pause');
    await paying.clearFaults();
    const end = performance.now() + 10_000;
    while (!/status 404/.test(await ask())) {
      assert.ok(performance.now() < end, 'it closes again');
      await systemClock.sleep(20);
    }
    assert.match(await ask(), /status 404/);
  });
});
