import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBreaker } from './breaker.ts';
import { createPacer } from './pacer.ts';

describe('the pacer', () => {
  test('lets a burst pass, then one request per interval', () => {
    const pacer = createPacer({ perSecond: 10, burst: 3 });
    const waits: number[] = [];
    for (let request = 0; request < 6; request += 1) {
      waits.push(pacer.waitMs(1_000));
      pacer.take(1_000);
    }
    assert.deepEqual(waits, [0, 0, 0, 100, 200, 300]);
  });

  test('lets at most its rate and one burst pass in any second', () => {
    const pacer = createPacer({ perSecond: 50, burst: 10 });
    const sent: number[] = [];
    for (let now = 0; now < 5_000; now += 1) {
      while (pacer.waitMs(now) === 0) {
        pacer.take(now);
        sent.push(now);
      }
    }
    for (let from = 0; from <= 4_000; from += 100) {
      const inSecond = sent.filter((at) => at >= from && at < from + 1_000).length;
      assert.ok(inSecond <= 60, `${inSecond} from ${from}`);
    }
    assert.ok(sent.length >= 250, 'the rate is used');
  });

  test('lets nothing pass during a pause, and pauses do not add up', () => {
    const pacer = createPacer({ perSecond: 10, burst: 3 });
    for (let answer = 0; answer < 20; answer += 1) pacer.pause(500, 1_000);
    assert.equal(pacer.waitMs(500), 1_000);
    assert.equal(pacer.waitMs(1_500), 0);
  });
});

describe('the breaker', () => {
  const open = () => {
    const breaker = createBreaker({ failuresMax: 3 });
    for (let failure = 0; failure < 3; failure += 1) {
      breaker.enter();
      breaker.failed(0);
    }
    return breaker;
  };

  test('doubts the gateway after three failures, until an answer or a minute after the last', () => {
    const breaker = createBreaker();
    for (let failure = 0; failure < 3; failure += 1) {
      assert.equal(breaker.isAnswering(0), true);
      breaker.failed(0);
    }
    assert.deepEqual([breaker.isAnswering(59_999), breaker.isAnswering(60_000)], [false, true]);
    breaker.failed(60_000);
    assert.equal(breaker.isAnswering(60_001), false);
    breaker.answered();
    assert.equal(breaker.isAnswering(60_001), true);
  });

  test('opens after failures in a row, not after failures between answers', () => {
    assert.equal(open().isOpen(0), true);
    const breaker = createBreaker({ failuresMax: 3 });
    for (let round = 0; round < 10; round += 1) {
      breaker.failed(0);
      breaker.failed(0);
      breaker.answered();
    }
    assert.equal(breaker.isOpen(0), false);
  });

  test('lets one probe pass after its pause, and closes when that is answered', () => {
    const breaker = open();
    assert.deepEqual([breaker.isOpen(999), breaker.isOpen(1_000)], [true, false]);
    breaker.enter();
    assert.equal(breaker.isOpen(1_000), true, 'only one');
    assert.equal(breaker.answered(), true);
    assert.equal(breaker.isOpen(1_000), false);
  });

  test('pauses twice as long after each probe without an answer, up to 30 seconds', () => {
    const breaker = open();
    let now = 1_000;
    const pauses: number[] = [];
    for (let probe = 0; probe < 7; probe += 1) {
      breaker.enter();
      breaker.failed(now);
      let pause = 0;
      while (breaker.isOpen(now + pause)) pause += 500;
      pauses.push(pause);
      now += pause;
    }
    assert.deepEqual(pauses, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  test('is closed by a late answer to a request from before it opened', () => {
    const breaker = open();
    breaker.answered();
    assert.equal(breaker.isOpen(0), false);
  });
});
