import assert from 'node:assert/strict';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '#platform/shared/clock.ts';
import { authorised, post, request } from '../support/http.ts';
import { loopbackAddresses, loopbackSettings } from '../support/loopback.ts';
import { kill, liftLimits, type Sandbox, startSandbox } from '../support/sandbox-process.ts';
import { checkoutBody } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let sandbox: Sandbox;
before(async () => {
  folder = await temporaryFolder();
  sandbox = await startSandbox(path.join(folder.path, 'data'), loopbackSettings);
  await liftLimits(sandbox.file.database_url, sandbox.file.integration.id);
});
after(async () => {
  await kill(sandbox);
  await folder.remove();
});

type SlowClient = { kind: string; socket: net.Socket; seconds: number | null; said: string };

/** Opens a connection and starts a request that it never finishes. */
function openSlowClient(
  host: string,
  kind: string,
  begin: string,
  then: 'drip' | 'nothing' | 'end',
): SlowClient {
  const port = Number(new URL(sandbox.file.base_url).port);
  const opened = performance.now();
  const socket = net.connect({ port, host, allowHalfOpen: true });
  const client: SlowClient = { kind, socket, seconds: null, said: '' };
  socket.setEncoding('utf8').on('data', (text) => {
    client.said += text;
  });
  // The server may reset the connection, which must not end the test.
  socket.on('error', () => {});
  const closed = () => {
    client.seconds ??= (performance.now() - opened) / 1000;
  };
  socket.on('end', closed).on('close', closed);
  socket.write(begin);
  if (then === 'end') socket.end();
  if (then === 'drip') {
    const drip = setInterval(() => socket.write('a'), 300);
    socket.on('close', () => clearInterval(drip)).on('end', () => clearInterval(drip));
  }
  return client;
}

test('two hundred slow clients are cut, and other requests are served', async (t) => {
  const { integration, base_url } = sandbox.file;
  const head = (more: string) =>
    `POST /api/checkouts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${more}`;
  const { authorization } = authorised(integration);
  const kinds: [kind: string, begin: string, then: 'drip' | 'nothing' | 'end'][] = [
    ['drips its head', head('X-Slow: '), 'drip'],
    ['stops within its head', head('X-Slow: '), 'nothing'],
    [
      'drips its body',
      head(`Authorization: ${authorization}\r\nContent-Length: 5000\r\n\r\n{`),
      'drip',
    ],
    [
      'drips chunks',
      head(`Authorization: ${authorization}\r\nTransfer-Encoding: chunked\r\n\r\n`),
      'drip',
    ],
    [
      'drips a body that the route does not read',
      'GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{',
      'drip',
    ],
    [
      'stops within its body',
      head(`Authorization: ${authorization}\r\nContent-Length: 5000\r\n\r\n{`),
      'nothing',
    ],
    ['sends nothing', '', 'nothing'],
    ['closes its half before it sent anything', '', 'end'],
    ['closes its half within its head', head('X-Slow: '), 'end'],
    [
      'closes its half within its body',
      head(`Authorization: ${authorization}\r\nContent-Length: 5000\r\n\r\n{`),
      'end',
    ],
  ];
  const clients = kinds.flatMap(([kind, begin, then]) =>
    Array.from({ length: 20 }, (_, index) =>
      openSlowClient(loopbackAddresses[index % loopbackAddresses.length] ?? '', kind, begin, then),
    ),
  );
  assert.equal(clients.length, 200);
  t.after(() => {
    for (const { socket } of clients) socket.destroy();
  });

  // Other clients are served in the meantime.
  let rounds = 0;
  const isOver = () => clients.every(({ seconds }) => seconds !== null);
  const deadline = performance.now() + 55_000;
  for (; !isOver() && performance.now() < deadline; rounds += 1) {
    const created = await post(`${base_url}/api/checkouts`, integration, checkoutBody());
    assert.equal(created.status, 200);
    const url = `${base_url}/api/checkouts/${created.body.data.id}`;
    assert.equal((await request(url, { headers: authorised(integration) })).status, 200);
    assert.equal((await request(`${base_url}/healthz`)).status, 200);
    await systemClock.sleep(1_000);
  }

  const times = Map.groupBy(clients, ({ kind }) => kind);
  for (const [kind, all] of times) {
    const slowest = Math.max(...all.map(({ seconds }) => seconds ?? Number.POSITIVE_INFINITY));
    t.diagnostic(`${kind}: closed after at most ${slowest.toFixed(1)} seconds`);
  }
  t.diagnostic(`${rounds} rounds of three requests served meanwhile`);
  // The limit is ten seconds. Without it, Node would cut the first of these clients after a minute.
  const late = clients.filter(({ seconds }) => (seconds ?? 99) > 50).map(({ kind }) => kind);
  assert.deepEqual([...new Set(late)], []);
  // If requests waited for the slow clients, those clients would be gone after one round.
  assert.ok(rounds > 1, 'no request waited for a slow client');
  for (const { kind, said } of clients) {
    // A browser opens connections in advance, and would take this for the answer to a request.
    if (kind === 'sends nothing') assert.equal(said, '', kind);
    // A client that gets an answer gets it in our format.
    if (said !== '' && !kind.includes('does not read')) {
      assert.match(said, /^HTTP\/1\.1 400 Bad Request\r\n/, kind);
      assert.match(said, /"code":"bad_request"/, kind);
    }
  }
});
