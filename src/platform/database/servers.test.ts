import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serversOf } from './servers.ts';

test('an address with several hosts names several servers', () => {
  assert.deepEqual(
    serversOf(
      'postgres://u:p%40x@a:5432,b.example:5433,[::1]/t?target_session_attrs=read-write&x=1',
    ),
    [
      'postgres://u:p%40x@a:5432/t?x=1',
      'postgres://u:p%40x@b.example:5433/t?x=1',
      'postgres://u:p%40x@[::1]/t?x=1',
    ],
  );
  assert.deepEqual(serversOf('postgresql://a/t'), ['postgresql://a/t']);
  assert.deepEqual(serversOf('postgres:///t?host=/run/postgresql'), [
    'postgres:///t?host=/run/postgresql',
  ]);
});

test('what is no address is refused', () => {
  for (const url of ['mysql://a/t', 'postgres://a:port/t', 'postgres://a:1,b:x/t', 'a,b', '']) {
    assert.equal(serversOf(url), null, url);
  }
});
