import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectMillisecondsOf, serversOf } from './servers.ts';

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

test('text that is not an address is refused', () => {
  for (const url of ['mysql://a/t', 'postgres://a:port/t', 'postgres://a:1,b:x/t', 'a,b', '']) {
    assert.equal(serversOf(url), null, url);
  }
});

test('an address may limit the time for opening a connection, which is otherwise five seconds', () => {
  assert.equal(connectMillisecondsOf('postgres://a:1,b:2/t?connect_timeout=30&x=1'), 30_000);
  assert.equal(connectMillisecondsOf('postgres://a/t?connect_timeout=9999999'), 600_000);
  for (const value of ['', '0', '-1', 'soon', 'NaN']) {
    assert.equal(connectMillisecondsOf(`postgres://a/t?connect_timeout=${value}`), 5_000, value);
  }
  assert.equal(connectMillisecondsOf('postgres://a/t'), 5_000);
});
