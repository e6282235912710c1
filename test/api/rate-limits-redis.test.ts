import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { redisRateLimitStore } from '#platform/http/rate-limits.redis.ts';
import { createRateLimits } from '#platform/http/rate-limits.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import { createAccount, log, send, startService } from '../support/service.ts';

const isInstalled = spawnSync('redis-server', ['--version']).status === 0;

describe('counts in Redis', { skip: !isInstalled && 'redis-server is not installed' }, () => {
  let redis: ChildProcess;
  let url: string;

  before(async () => {
    const [port] = await freePorts(1);
    url = `redis://127.0.0.1:${port}`;
    redis = spawn('redis-server', ['--port', String(port), '--save', '', '--bind', '127.0.0.1']);
    for await (const line of redis.stdout ?? []) {
      if (String(line).includes('Ready to accept connections')) break;
    }
  });
  after(async () => {
    redis.kill();
    await once(redis, 'exit');
  });

  test('a window holds exactly as many as its limit, over two processes and under concurrency', async () => {
    const stores = await Promise.all([
      redisRateLimitStore(url, log),
      redisRateLimitStore(url, log),
    ]);
    const hits = await Promise.all(
      Array.from({ length: 200 }, (_, index) => stores[index % 2]?.hit('window', 60)),
    );
    const counts = hits.map((hit) => hit?.count ?? 0).sort((a, b) => a - b);
    assert.deepEqual(
      counts,
      Array.from({ length: 200 }, (_, index) => index + 1),
    );
    for (const hit of hits) assert.ok(hit && hit.resetsInMilliseconds <= 60_000);
    for (const store of stores) await store.close?.();
  });

  test('a window ends by itself, and the next hit begins a new one', async () => {
    const store = await redisRateLimitStore(url, log);
    assert.equal((await store.hit('short', 0.05)).count, 1);
    let again = await store.hit('short', 0.05);
    while (again.count > 1) again = await store.hit('short', 0.05);
    assert.equal(again.count, 1);
    await store.close?.();
  });

  test('a weight of 0 only reads the count', async () => {
    const store = await redisRateLimitStore(url, log);
    assert.equal((await store.hit('weighed', 60, 0)).count, 0);
    assert.equal((await store.hit('weighed', 60)).count, 1);
    const { count, resetsInMilliseconds } = await store.hit('weighed', 60, 0);
    assert.equal(count, 1);
    assert.ok(resetsInMilliseconds > 0 && resetsInMilliseconds <= 60_000);
    await store.close?.();
  });

  test('the API answers 429 from these counts', async () => {
    const service = await startService({ env: { REDIS_URL: url }, rateLimitStore: 'redis' });
    try {
      const account = await createAccount(service, { limits: 'spec' });
      const statuses = [];
      for (let round = 0; round < 6; round += 1) {
        statuses.push((await send(service, account, 'GET', '/api/config')).status);
      }
      assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429]);
    } finally {
      await service.close();
    }
  });

  test('without Redis, requests are refused rather than passed uncounted', async () => {
    const store = await redisRateLimitStore(`redis://127.0.0.1:${(await freePorts(1))[0]}`, log);
    const limits = createRateLimits(store);
    await assert.rejects(limits.failedAuthentication('192.0.2.1'));
    await store.close?.();
  });
});
