import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Clock, systemClock } from '#platform/shared/clock.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import {
  type Destinations,
  isReachable,
  parseAllowedRanges,
} from '#purchases/callbacks/delivery/destination.ts';
import type { Resolve } from '#purchases/callbacks/delivery/resolve-name.ts';
import {
  type CallbackSenderOptions,
  createCallbackSender,
} from '#purchases/callbacks/delivery/send-callback.ts';
import { createAuthority, expired, notYetValid, selfSigned } from '../support/certificates.ts';
import { until } from '../support/until.ts';

const authority = createAuthority();
const body = Buffer.from('{"status":"successful"}');
const headers = { 'content-type': 'application/json', 'x-signature': 'c2lnbmVk' };
const loopback = '127.0.0.0/8,::1/128';

const closings: (() => unknown)[] = [];
after(async () => {
  for (const close of closings) await close();
});

/** Listens, and closes all sockets of the server after the tests. */
async function listening<T extends net.Server>(server: T, host = '127.0.0.1', port = 0) {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  closings.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port };
}

/** A receiver on plain TCP that counts what reaches it. */
async function tcp(answer: (socket: net.Socket) => void = () => {}, host?: string, port?: number) {
  const seen = { connections: 0, bytes: 0 };
  const { port: at } = await listening(
    net.createServer((socket) => {
      seen.connections += 1;
      socket.on('data', (chunk) => {
        if (seen.bytes === 0) answer(socket);
        seen.bytes += chunk.length;
      });
    }),
    host,
    port,
  );
  return { port: at, seen };
}

const answering = (text: string) => tcp((socket) => socket.end(text));

type Options = CallbackSenderOptions & { clock?: Clock; allowed?: Destinations };

function sender(allowed: string, options: Options = {}) {
  const created = createCallbackSender({
    clock: systemClock,
    allowed: { ranges: parseAllowedRanges(allowed), hosts: null },
    resolve: async (name) => assert.fail(`${name} must not be looked up`),
    authorities: [authority.cert],
    // A loaded machine may pause for longer than an exchange may take.
    deadlineMilliseconds: 120_000,
    ...options,
  });
  closings.push(created.close);
  return created;
}

const post = (url: string, allowed = loopback, options: Options = {}) =>
  sender(allowed, options).send({ url, headers, body });

/**
 * On this clock the deadline never comes, so only the limit of a connection can end an exchange.
 */
const patientClock: Clock = {
  ...systemClock,
  sleep: (_milliseconds, signal) =>
    new Promise((resolve) => signal?.addEventListener('abort', () => resolve())),
};

const found = (...addresses: string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: net.isIP(address) }));
const resolvesTo =
  (...addresses: string[]): Resolve =>
  async () =>
    found(...addresses);

const forbidden = {
  'this network': ['0.0.0.0', '0.1.2.3'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '::'],
  'link-local': ['169.254.0.1', 'fe80::1', 'fec0::1'],
  metadata: ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200'],
  CGNAT: ['100.64.0.1', '100.127.255.255'],
  'protocol assignments': ['192.0.0.1', '192.0.0.192', '2001::1', '2001:10::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  benchmarking: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  'IPv4 in IPv6': ['::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:169.254.169.254', '::7f00:1'],
  translated: ['::ffff:0:127.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::7f00:1', '64:ff9b::808:808'],
  '6to4': ['2002:7f00:1::1', '2002:a00:1::1', '192.88.99.1'],
  Teredo: ['2001:0:7f00:1::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  'unique local': ['fc00::1', 'fd12:3456:789a::1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  'reserved and broadcast': ['240.0.0.1', '255.255.255.255', '100::1', '4000::1', 'e000::1'],
};

describe('callbacks do not reach addresses that are not public', () => {
  for (const [kind, addresses] of Object.entries(forbidden)) {
    test(`${kind}: as a literal or behind a name, alone or among public addresses`, async () => {
      const calls: Promise<{ reason: string | null; address: string | null }>[] = [];
      for (const address of addresses) {
        assert.equal(isReachable(address, { ranges: [], hosts: null }), false, address);
        const literal = net.isIPv6(address) ? `[${address}]` : address;
        calls.push(post(`https://${literal}/callback`, ''));
        const mixes = [[address], ['93.184.216.34', address], [address, '2606:2800:220:1::1']];
        for (const mix of mixes) {
          calls.push(post('https://shop.example/', '', { resolve: resolvesTo(...mix) }));
        }
      }
      for (const { reason, address } of await Promise.all(calls)) {
        assert.deepEqual([reason, address], ['blocked_address', null]);
      }
    });
  }

  test('callbacks reach public addresses', () => {
    for (const address of ['93.184.216.34', '1.1.1.1', '2606:4700::1111', '::ffff:8.8.8.8']) {
      assert.equal(isReachable(address, { ranges: [], hosts: null }), true, address);
    }
  });
});

test('no spelling of a loopback address opens a connection', async () => {
  const { port, seen } = await tcp();
  const v6 = await tcp(undefined, '::1', port);
  const hosts = [
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '0x7f000001',
    '2130706433',
    '017700000001',
    '0177.0.0.1',
    '127.0.0.1.',
    '127.0.0.1',
    '①②⑦.⓪.⓪.①',
    '%31%32%37.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '[::]',
    '0.0.0.0',
    '0',
    'localhost',
    'LOCALHOST.',
    'sub.localhost',
    'printer',
    'printer.local',
    'db.internal',
    'user:password@127.0.0.1',
  ];
  for (const host of hosts) {
    for (const scheme of ['https', 'http']) {
      const { reason } = await post(`${scheme}://${host}:${port}/`, '');
      assert.equal(reason, 'blocked_address', `${scheme}://${host}`);
    }
  }
  for (const url of [
    'ftp://shop.example/',
    'file:///etc/passwd',
    'gopher://x.y/',
    'nonsense',
    '',
  ]) {
    assert.equal((await post(url, '')).reason, 'blocked_address', url);
  }
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '0.0.0.0']) {
    const resolve = resolvesTo(address);
    const { reason } = await post(`https://shop.example:${port}/`, '', { resolve });
    assert.equal(reason, 'blocked_address', address);
  }
  assert.deepEqual([seen.connections, v6.seen.connections], [0, 0]);
});

test('a connection goes to the address that was checked, even if the name changes', async () => {
  const good = await answering('HTTP/1.1 204 No Content\r\n\r\n');
  const trap = await tcp(undefined, '127.0.0.9', good.port);
  const answers = [found('127.0.0.1'), found('127.0.0.9'), found('127.0.0.9')];
  const asked: string[] = [];
  const resolve: Resolve = async (name) => {
    asked.push(name);
    return answers.shift() ?? [];
  };
  const { server, port } = await listening(
    https.createServer(authority.certify(['shop.example']), (_request, response) => {
      response.setHeader('connection', 'close').end();
    }),
  );
  const { send } = sender('127.0.0.1/32', { resolve });
  const url = `https://shop.example:${port}/`;
  const first = await send({ url, headers, body });
  assert.deepEqual([first.reason, first.address], [null, '127.0.0.1']);
  assert.deepEqual(asked, ['shop.example']);
  // The next connection looks the name up again and blocks the new address.
  server.closeAllConnections();
  assert.equal((await send({ url, headers, body })).reason, 'blocked_address');
  assert.equal(trap.seen.connections, 0);
});

test('a callback to a host that is no longer listed is not sent', async () => {
  const allowed = { ranges: [], hosts: ['other.example'] };
  const { send } = sender('', { allowed });
  const { reason } = await send({ url: 'https://shop.example/', headers, body });
  assert.equal(reason, 'blocked_address');
});

test('the address of the connected socket is checked before anything is sent', async () => {
  // A connection to 0.0.0.0 reaches the machine itself.
  const { port, seen } = await tcp();
  const { reason, status } = await post(`http://0.0.0.0:${port}/`, '0.0.0.0/32');
  assert.deepEqual([reason, status], ['blocked_address', null]);
  assert.equal(seen.bytes, 0);
});

test('if one address of a name refuses the connection, the next one is tried', async () => {
  const certificate = authority.certify(['shop.example']);
  const { port } = await listening(https.createServer(certificate, (_, answer) => answer.end()));
  const resolve = resolvesTo('127.0.0.2', '127.0.0.1');
  const { reason, address } = await post(`https://shop.example:${port}/`, loopback, { resolve });
  assert.deepEqual([reason, address], [null, '127.0.0.1']);
});

describe('a name without an address fails with the reason dns', () => {
  const unknown: Record<string, Resolve> = {
    'is not found': () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' })),
    'has no address': async () => [],
    'gets no answer': () => new Promise(() => {}),
  };
  for (const [how, resolve] of Object.entries(unknown)) {
    test(how, async () => {
      const options = { resolve, deadlineMilliseconds: 1_000, clock: patientClock };
      const { reason, address } = await post('https://shop.example/', '', options);
      assert.deepEqual([reason, address], ['dns', null]);
    });
  }
});

describe('a receiver without a valid certificate receives nothing', () => {
  const shop = (certificate: { cert: string; key: string }) => certificate;
  const wrong = {
    'from an unknown authority': shop(createAuthority('Another').certify(['shop.example'])),
    expired: shop(authority.certify(['shop.example'], expired())),
    'not valid yet': shop(authority.certify(['shop.example'], notYetValid())),
    'self-signed': shop(selfSigned('shop.example')),
    'for another name': shop(authority.certify(['other.example'])),
    'for a subdomain': shop(authority.certify(['www.shop.example'])),
  };
  for (const [how, certificate] of Object.entries(wrong)) {
    test(how, async () => {
      const { server, port } = await listening(
        https.createServer(certificate, () => assert.fail('the receiver got the callback')),
      );
      server.on('tlsClientError', () => {});
      const resolve = resolvesTo('127.0.0.1');
      const exchange = await post(`https://shop.example:${port}/`, loopback, { resolve });
      assert.deepEqual([exchange.reason, exchange.delivered], ['tls', false]);
      assert.equal(exchange.address, '127.0.0.1');
      assert.ok(exchange.timings.connect !== undefined);
    });
  }

  test('a certificate for a name, when the URL has the address', async () => {
    const certificate = authority.certify(['shop.example']);
    const { server, port } = await listening(
      https.createServer(certificate, () => assert.fail('the receiver got the callback')),
    );
    server.on('tlsClientError', () => {});
    assert.equal((await post(`https://127.0.0.1:${port}/`)).reason, 'tls');
  });

  test('plain HTTP or TLS 1.1 instead of a certificate', async () => {
    const plain = await answering('HTTP/1.1 200 OK\r\n\r\n');
    const resolve = resolvesTo('127.0.0.1');
    const spoken = await post(`https://shop.example:${plain.port}/`, loopback, { resolve });
    assert.equal(spoken.reason, 'tls');
    const certificate = authority.certify(['shop.example']);
    const old = {
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL@SECLEVEL=0',
    } as const;
    const { server, port } = await listening(https.createServer({ ...certificate, ...old }));
    server.on('tlsClientError', () => {});
    const outdated = await post(`https://shop.example:${port}/`, loopback, { resolve });
    assert.equal(outdated.reason, 'tls');
  });

  test('a receiver with a valid certificate receives the callback', async () => {
    const certificate = authority.certify(['shop.example']);
    const { port } = await listening(https.createServer(certificate, (_, answer) => answer.end()));
    const resolve = resolvesTo('127.0.0.1');
    const exchange = await post(`https://shop.example:${port}/`, loopback, { resolve });
    assert.deepEqual([exchange.reason, exchange.tls_version], [null, 'TLSv1.3']);
    for (const phase of ['dns', 'connect', 'tls', 'first_byte', 'total'] as const) {
      assert.ok((exchange.timings[phase] ?? -1) >= 0, phase);
    }
  });
});

const drip = (socket: net.Socket, text: string, milliseconds: number) => {
  const timer = setInterval(() => socket.write(text), milliseconds);
  socket.on('close', () => clearInterval(timer));
};

describe('no receiver takes longer than the deadline', () => {
  const slow: Record<string, (socket: net.Socket) => void> = {
    'says nothing': () => {},
    'drips headers': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      drip(socket, 'x: y\r\n', 30);
    },
    'drips a body': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n');
      drip(socket, ' ', 30);
    },
    'drips chunks': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      drip(socket, '1\r\n \r\n', 30);
    },
    'sends 1xx responses for ever': (socket) =>
      drip(socket, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', 30),
  };
  for (const [how, answer] of Object.entries(slow)) {
    test(how, async () => {
      let hasBegun = () => false;
      const { port } = await tcp((socket) => {
        answer(socket);
        const before = socket.bytesWritten;
        hasBegun = () => how === 'says nothing' || socket.bytesWritten > before;
      });
      // On this clock the deadline passes once the receiver has the request and has sent something.
      let now = 0;
      const sleep = async (milliseconds: number) => {
        await until('the receiver', () => hasBegun());
        now += milliseconds;
      };
      const clock = { ...systemClock, monotonic: () => now, sleep };
      const options = { clock, deadlineMilliseconds: 600_000 };
      const exchange = await post(`http://127.0.0.1:${port}/`, loopback, options);
      assert.deepEqual([exchange.reason, exchange.delivered], ['timeout', false]);
      assert.equal(exchange.timings.total, 600_000);
    });
  }

  test('never ends the TLS handshake', async () => {
    const { port } = await tcp();
    const resolve = resolvesTo('127.0.0.1');
    const options = { resolve, deadlineMilliseconds: 1_000, clock: patientClock };
    const send = () => post(`https://shop.example:${port}/`, loopback, options);
    let exchange = await send();
    // A busy machine may need the whole time for the connection.
    while (exchange.timings.connect === undefined) exchange = await send();
    assert.deepEqual([exchange.reason, exchange.address], ['timeout', '127.0.0.1']);
    assert.equal(exchange.timings.tls, undefined);
  });

  test('the deadline is 10 seconds', async () => {
    const { port } = await tcp();
    let now = 0;
    // On this clock time passes only while something sleeps.
    const sleep = async (milliseconds: number) => {
      now += milliseconds;
    };
    const clock = { ...systemClock, monotonic: () => now, sleep };
    const allowed = { ranges: parseAllowedRanges(loopback), hosts: null };
    const created = createCallbackSender({ clock, allowed });
    closings.push(created.close);
    const url = `http://127.0.0.1:${port}/`;
    const { reason, timings } = await created.send({ url, headers, body });
    assert.deepEqual([reason, timings.total], ['timeout', 10_000]);
  });
});

describe('a failed delivery has a reason', () => {
  const gone = async (socket: net.Socket) => void socket.resetAndDestroy();
  const answers: [string, string, (socket: net.Socket) => void][] = [
    ['closed', 'connection_closed', (socket) => socket.end()],
    ['reset', 'connection_closed', gone],
    ['closed in the headers', 'connection_closed', (socket) => socket.end('HTTP/1.1 200 OK\r\nx')],
    [
      'closed in the body',
      'connection_closed',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'),
    ],
    ['garbage', 'invalid_response', (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')],
    ['bytes', 'invalid_response', (socket) => socket.end(Buffer.alloc(1_000, 0xff))],
    [
      'a bad length',
      'invalid_response',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n'),
    ],
    [
      'headers without an end',
      'response_too_large',
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        drip(socket, `x: ${'y'.repeat(4_000)}\r\n`, 1);
      },
    ],
    [
      'one long header',
      'response_too_large',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}`),
    ],
    [
      'a switch of protocols',
      'invalid_response',
      (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n'),
    ],
  ];
  for (const [how, reason, answer] of answers) {
    test(`${how}: ${reason}`, async () => {
      const { port } = await tcp(answer);
      const exchange = await post(`http://127.0.0.1:${port}/`);
      assert.deepEqual([exchange.reason, exchange.delivered], [reason, false]);
      assert.equal(exchange.address, '127.0.0.1');
    });
  }

  test('a closed port: connect', async () => {
    const [port] = await freePorts(1);
    assert.equal((await post(`http://127.0.0.1:${port}/`)).reason, 'connect');
    const resolve = resolvesTo('127.0.0.1', '127.0.0.2');
    const named = await post(`https://shop.example:${port}/`, loopback, { resolve });
    assert.equal(named.reason, 'connect');
    assert.ok(named.timings.dns !== undefined);
  });

  for (const status of [301, 302, 303, 307, 308, 300, 304, 400, 401, 404, 410, 429, 500, 503]) {
    test(`${status}: http_${status}`, async () => {
      const elsewhere = await tcp();
      const location = `location: http://127.0.0.1:${elsewhere.port}/\r\n`;
      const text = `HTTP/1.1 ${status} X\r\n${location}content-length: 0\r\n\r\n`;
      const { port } = await answering(text);
      const exchange = await post(`http://127.0.0.1:${port}/`);
      assert.equal(exchange.reason, `http_${status}`);
      assert.equal(exchange.status, status);
      assert.equal(elsewhere.seen.connections, 0, 'a redirect is not followed');
    });
  }
  for (const status of [200, 201, 202, 204, 299]) {
    test(`${status}: delivered`, async () => {
      const { port } = await answering(`HTTP/1.1 ${status} X\r\nx-one: 1\r\n\r\n`);
      const exchange = await post(`http://127.0.0.1:${port}/`);
      assert.deepEqual([exchange.reason, exchange.delivered], [null, true]);
      assert.deepEqual([exchange.status, exchange.headers], [status, { 'x-one': '1' }]);
    });
  }
});

describe('at most 64 KiB of a response body are read', () => {
  for (const [length, truncated] of [
    [65_535, false],
    [65_536, false],
    [65_537, true],
    [1_000_000, true],
  ] as const) {
    test(`${length} bytes`, async () => {
      const { port } = await listening(
        http.createServer((_, answer) => answer.end(Buffer.alloc(length, ' '))),
      );
      const exchange = await post(`http://127.0.0.1:${port}/`);
      assert.deepEqual([exchange.delivered, exchange.truncated], [true, truncated]);
      assert.equal(exchange.body?.length, Math.min(length, 65_536));
    });
  }

  test('a body without an end is cut off', async () => {
    let sent = 0;
    const { port } = await tcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const more = () => {
        while (!socket.destroyed && socket.write(`4000\r\n${' '.repeat(0x4000)}\r\n`)) {
          sent += 0x4000;
        }
      };
      socket.on('drain', more);
      more();
    });
    const exchange = await post(`http://127.0.0.1:${port}/`);
    assert.deepEqual([exchange.delivered, exchange.truncated], [true, true]);
    assert.ok(sent < 50_000_000);
  });

  test('a compressed body is not decompressed', async () => {
    const bomb = await promisify(gzip)(Buffer.alloc(10_000_000));
    assert.ok(bomb.length < 65_536);
    const { port } = await listening(
      http.createServer((_, answer) => answer.setHeader('content-encoding', 'gzip').end(bomb)),
    );
    const exchange = await post(`http://127.0.0.1:${port}/`);
    assert.deepEqual(exchange.body, bomb);
  });
});

test('an exchange knows its connection, even when the connection is used again', async () => {
  const certificate = authority.certify(['one.example', 'two.example']);
  const versions = ['TLSv1.2', 'TLSv1.3'] as const;
  const [one, two] = await Promise.all(
    versions.map((version, index) =>
      listening(
        https.createServer(
          {
            ...certificate,
            minVersion: version,
            maxVersion: version,
            keepAliveTimeout: 60_000,
          },
          (request, answer) => {
            request.resume().on('end', () => answer.end(String(request.socket.remotePort)));
          },
        ),
        `127.0.0.${index + 1}`,
      ),
    ),
  );
  assert.ok(one && two);
  const resolve: Resolve = async (name) =>
    found(name === 'one.example' ? '127.0.0.1' : '127.0.0.2');
  const { send } = sender(loopback, { resolve, idleMilliseconds: 60_000 });
  const urls = [`https://one.example:${one.port}/`, `https://two.example:${two.port}/`];
  for (let round = 0; round < 3; round += 1) {
    const exchanges = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        send({ url: urls[index % 2] as string, headers, body }),
      ),
    );
    for (const [index, exchange] of exchanges.entries()) {
      const expected = index % 2 === 0 ? ['127.0.0.1', 'TLSv1.2'] : ['127.0.0.2', 'TLSv1.3'];
      assert.deepEqual([exchange.address, exchange.tls_version], expected);
      // Only the exchange that opened the connection has the time of its look-up and of TLS.
      const isReused = exchange.timings.tls === undefined;
      assert.equal(exchange.timings.dns === undefined, isReused);
      if (round > 0) assert.ok(isReused, 'a connection was used again');
      else assert.ok(!isReused);
    }
    const ports = new Set(exchanges.map((exchange) => exchange.body?.toString()));
    assert.equal(ports.size, 12);
    // The sender can use the connections again only after this turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
  }
});

test('a receiver that hangs delays no other delivery, not even to itself', async () => {
  const dead = await tcp();
  const { port } = await listening(http.createServer((_, answer) => answer.end()));
  const { send, close } = sender(loopback, { clock: patientClock, deadlineMilliseconds: 600_000 });
  const hanging = Array.from({ length: 50 }, () =>
    send({ url: `http://127.0.0.1:${dead.port}/`, headers, body }),
  );
  while (dead.seen.connections < 50) await new Promise((resolve) => setImmediate(resolve));
  const { delivered } = await send({ url: `http://127.0.0.1:${port}/`, headers, body });
  assert.ok(delivered);
  await close();
  for (const exchange of await Promise.all(hanging)) assert.equal(exchange.reason, 'interrupted');
});

test('proxy settings of the environment are ignored', async (t) => {
  const proxy = await tcp();
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy'];
  for (const name of names) {
    const before = process.env[name];
    process.env[name] = `http://127.0.0.1:${proxy.port}`;
    t.after(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
  const { port } = await listening(http.createServer((_, answer) => answer.end()));
  assert.equal((await post(`http://127.0.0.1:${port}/`)).reason, null);
  assert.equal(proxy.seen.connections, 0);
});

test('a delivery in flight when the service stops is interrupted', async () => {
  const { port, seen } = await tcp();
  const { send, close } = sender(loopback);
  const inFlight = send({ url: `http://127.0.0.1:${port}/`, headers, body });
  while (seen.bytes === 0) await new Promise((resolve) => setImmediate(resolve));
  await close();
  assert.equal((await inFlight).reason, 'interrupted');
  assert.equal(tls.DEFAULT_MIN_VERSION, 'TLSv1.2');
});
