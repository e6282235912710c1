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

/** Counts requests at the gateway, with a fault that strikes them all and changes nothing. */
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
    const waits: number[] = [];
    // All calls come at one moment of this clock.
    const sleep = async (milliseconds: number) => void waits.push(milliseconds);
    const clock = { ...systemClock, monotonic: () => 0, sleep };
    const limited = limitGateway(paying.gateway.gateway, { clock, log }, { requestsPerSecond: 20 });
    const calls = Array.from({ length: 400 }, () => limited.payment(merchantAt(), 'pi_unknown'));
    const answers = await Promise.allSettled(calls);
    const reasons = answers.map((one) => (one.status === 'rejected' ? String(one.reason) : ''));
    const refused = reasons.filter((reason) => reason.includes('budget')).length;
    const count = await asked();
    assert.equal(count + refused, 400);
    const seconds = Math.max(...waits) / 1000;
    assert.ok(seconds <= 5, `${seconds} seconds are too long for a shopper`);
    assert.ok(count > 0 && count <= 20 * seconds + 10, `${count} requests in ${seconds} seconds`);
  });

  test('one budget for each kind of call, which leaves the other kinds alone', async () => {
    const asked = await countRequests({ method: 'GET', path: '/v1/refunds/:id' });
    const waits: number[] = [];
    const sleep = async (milliseconds: number) => void waits.push(milliseconds);
    const clock = { ...systemClock, monotonic: () => 0, sleep };
    const limits = { requestsPerSecond: 80, requestsPerSecondOfKind: 20 };
    const busy = () => Promise.reject(new OutcomeUnknown('busy', 'too_many', 4_000));
    const { gateway } = paying.gateway;
    const limited = limitGateway({ ...gateway, capture: busy }, { clock, log }, limits);
    const look = () => limited.refundStatus(merchantAt(), 're_unknown');
    await Promise.allSettled(Array.from({ length: 400 }, look));
    const seconds = Math.max(...waits) / 1000;
    const count = await asked();
    assert.ok(count > 0 && count <= 20 * seconds + 10, `${count} requests in ${seconds} seconds`);
    const hold = { key: 'k', merchant: merchantAt(), payment_ref: 'pi_unknown', amount: 1 };
    await assert.rejects(limited.capture(hold), /busy/);
    waits.length = 0;
    await assert.rejects(limited.payment(merchantAt(), 'pi_unknown'), /status 404/);
    const [shopper = 0] = waits;
    assert.ok(shopper < 1_000, `a shopper waits for ${shopper} ms`);
    await assert.rejects(limited.capture(hold), /busy/);
    assert.ok(Math.max(...waits) >= 4_000, 'the next capture waits as long as it was asked to');
  });

  test('none of that budget with events that anyone may post', async () => {
    const { gateway } = paying.gateway;
    // No time passes, so a call that has to wait is seen.
    const sleep = () => assert.fail('a call waits');
    const clock = { ...systemClock, monotonic: () => 0, sleep };
    const limited = limitGateway(gateway, { clock, log }, { requestsPerSecond: 20 });
    for (let event = 0; event < 200; event += 1) {
      assert.equal(await limited.readEvent(Buffer.from('{}'), () => 'forged'), null);
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
    let now = 0;
    const clock = { ...systemClock, monotonic: () => now };
    const limits = { requestsPerSecond: null, failuresMax: 5 };
    const limited = limitGateway(paying.gateway.gateway, { clock, log }, limits);
    const ask = () => limited.payment(merchantAt(), 'pi_unknown').then(JSON.stringify, String);
    for (let failure = 0; failure < 5; failure += 1) assert.match(await ask(), /status 500/);
    // Another call of another kind is refused as well.
    await assert.rejects(limited.refundStatus(merchantAt(), 're_unknown'), /was not asked/);
    for (let probes = 0; probes < 2; now += 10) {
      const answer = await ask();
      if (/status 500/.test(answer)) probes += 1;
      else assert.match(answer, /was not asked/);
    }
    assert.ok(now >= 1_000, `two probes in ${now} ms`);
    assert.equal(await asked(), 7);
    await paying.clearFaults();
    for (let attempts = 0; !/status 404/.test(await ask()); attempts += 1, now += 100) {
      assert.ok(attempts < 100, 'it closes again');
    }
    assert.match(await ask(), /status 404/);
  });
});
