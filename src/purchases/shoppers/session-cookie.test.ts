import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sessionCookie, sessionTokenOf } from './session-cookie.ts';

const token = 'x'.repeat(43);
const secure = 'https://pay.example';

test('over https the session of a plan is a __Secure- cookie that no script reads', () => {
  assert.equal(
    sessionCookie(secure, 'link', { value: token, seconds: 1_800 }),
    `__Secure-plan=${token}; Path=/pay/link; Max-Age=1800; HttpOnly; SameSite=Lax; Secure`,
  );
});

test('a cookie that another site on the domain could set without TLS does not count', () => {
  assert.equal(sessionTokenOf(`a=b; __Secure-plan=${token}`, secure), token);
  for (const cookie of [undefined, `plan=${token}`, `__Secure-plan=${token}x`, '__Secure-plan=']) {
    assert.equal(sessionTokenOf(cookie, secure), null);
  }
  assert.equal(sessionTokenOf(`plan=${token}`, 'http://localhost:3000'), token);
});
