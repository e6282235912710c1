import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sessionCookie, sessionTokenOf } from './session-cookie.ts';

const token = 'x'.repeat(43);
const secure = 'https://pay.example';
const id = '0199a8f2-31b4-7c05-8e6d-000000000001';
const otherId = '0199a8f2-31b4-7c05-8e6d-000000000002';

test('over https the session of a plan is a __Host- cookie that no script reads', () => {
  assert.equal(
    sessionCookie(secure, id, { value: token, seconds: 1_800 }),
    `__Host-plan-${id}=${token}; Path=/; Max-Age=1800; HttpOnly; SameSite=Lax; Secure`,
  );
});

test('a cookie of another plan, or that another site on the domain could set, does not count', () => {
  const name = `__Host-plan-${id}`;
  const all = `__Host-plan-${otherId}=${'y'.repeat(43)}; ${name}=${token}`;
  assert.equal(sessionTokenOf(all, secure, id), token);
  const others = [undefined, `plan-${id}=${token}`, `__Secure-plan-${id}=${token}`];
  for (const cookie of [...others, `${name}=${token}x`, `${name}=`]) {
    assert.equal(sessionTokenOf(cookie, secure, id), null);
  }
  assert.equal(sessionTokenOf(all, secure, 'other'), null);
  assert.equal(sessionTokenOf(`plan-${id}=${token}`, 'http://localhost:3000', id), token);
});
