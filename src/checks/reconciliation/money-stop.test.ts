import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainAhead, explainFall } from './money-stop.ts';

const own = { id: 'ours', heartbeat: 7 };
const at = (database: string, count: number) => ({ database, count });

test('money stops when the gateway has a later heartbeat, or in production only that of another database', () => {
  const cases = [
    { heartbeats: [], sandbox: null, production: null },
    { heartbeats: [at('ours', 7)], sandbox: null, production: null },
    { heartbeats: [at('ours', 6)], sandbox: null, production: null },
    { heartbeats: [at('theirs', 9), at('ours', 7)], sandbox: null, production: null },
    {
      heartbeats: [at('ours', 8)],
      sandbox: /heartbeat 8 there, 7 here/,
      production: /heartbeat 8 there, 7 here/,
    },
    { heartbeats: [at('theirs', 1)], sandbox: null, production: /^Another database/ },
  ];
  for (const { heartbeats, ...expected } of cases) {
    for (const environment of ['sandbox', 'production'] as const) {
      const reason = explainAhead(own, heartbeats, environment);
      const pattern = expected[environment];
      if (pattern === null) assert.equal(reason, null, JSON.stringify(heartbeats));
      else assert.match(reason ?? '', pattern);
    }
  }
});

test('money stops when the heartbeat has fallen, unless money is stopped already', () => {
  assert.equal(explainFall({ stopped_reason: null, heartbeat: 7 }, 7), null);
  assert.equal(explainFall({ stopped_reason: null, heartbeat: 8 }, 7), null);
  assert.match(explainFall({ stopped_reason: null, heartbeat: 6 }, 7) ?? '', /fell from 7 to 6/);
  assert.equal(explainFall({ stopped_reason: 'stopped', heartbeat: 6 }, 7), null);
});
