import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { openDatabase } from '../../src/database/database.ts';
import { reading } from '../../src/database/transaction.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { serverUrl } from '../support/database-server.ts';
import { log } from '../support/service.ts';

/** A port at which nothing listens. */
async function closedPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('with several hosts, the one that takes writes is used', async () => {
  const { username, password, hostname, port, pathname } = new URL(serverUrl);
  const credentials = `${username}${password && `:${password}`}`;
  // A server that never answers, one that refuses, one that is read only, and one that takes writes.
  const silent = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  const silentPort = (silent.address() as net.AddressInfo).port;
  const readOnly = new URL(serverUrl);
  readOnly.searchParams.set('options', '-c default_transaction_read_only=on');
  const hosts = `127.0.0.1:${silentPort},127.0.0.1:${await closedPort()},${hostname}:${port}`;
  const url = `postgres://${credentials}@${hosts}${pathname}?target_session_attrs=read-write`;
  const database = openDatabase(url, { log, maxConnections: 3 });
  try {
    for (let round = 0; round < 5; round += 1) {
      await reading({ database, clock: systemClock }, (db) =>
        db.selectNoFrom((eb) => eb.val(1).as('one')).execute(),
      );
    }
  } finally {
    await database.close();
    silent.close();
  }
  const closed = openDatabase(readOnly.href, { log, maxConnections: 1 });
  await assert.rejects(closed.pool.query('select'), { code: '25006' });
  await closed.close();
});
