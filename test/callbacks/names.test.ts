import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import ipaddr from 'ipaddr.js';
import { systemClock } from '#platform/shared/clock.ts';
import { createResolve } from '#purchases/callbacks/delivery/resolve-name.ts';
import { createCallbackSender } from '#purchases/callbacks/delivery/send-callback.ts';

// Looks up names of receivers at a real name server over UDP.

const types = { 1: 'A', 28: 'AAAA' } as const;
type Known = { A?: string[]; AAAA?: string[] } | 'unknown' | 'broken' | 'silent' | 'held';
type Answers = Record<string, Known>;

const answers: Answers = {
  'four.example': { A: ['93.184.216.34', '93.184.216.35'] },
  'six.example': { AAAA: ['2606:2800:220:1::1'] },
  'both.example': { A: ['93.184.216.34'], AAAA: ['2606:2800:220:1::1'] },
  'none.example': {},
  'nowhere.example': 'unknown',
  'broken.example': 'broken',
  'silent.example': 'silent',
  'held.example': 'held',
  'trap.example': { A: ['93.184.216.34', '169.254.169.254'] },
  'inside.example': { AAAA: ['::ffff:10.0.0.1'] },
};
const asked: string[] = [];
/** Functions that send the answers which the server holds back. */
const release: (() => void)[] = [];
const server = dgram.createSocket('udp4');
let resolve: ReturnType<typeof createResolve>;
before(async () => {
  server.on('message', (query, from) => {
    const { reply, known } = answer(query);
    const send = () => server.send(reply, from.port, from.address);
    if (known === 'held') release.push(send);
    else if (known !== 'silent') send();
  });
  await new Promise<void>((done) => server.bind(0, '127.0.0.1', done));
  resolve = createResolve([`127.0.0.1:${server.address().port}`]);
});
after(() => server.close());

/** The reply of a name server to one query, in the format of RFC 1035. */
function answer(query: Buffer): { reply: Buffer; known: Known } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.subarray(at + 1, at + 1 + length).toString());
    at += length + 1;
  }
  const type = types[query.readUInt16BE(at + 1) as keyof typeof types];
  const name = labels.join('.').toLowerCase();
  asked.push(`${name} ${type}`);
  const known = answers[name] ?? 'unknown';
  const addresses = typeof known === 'string' ? [] : (known[type] ?? []);
  const code = known === 'unknown' ? 3 : known === 'broken' ? 2 : 0;
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt16BE(0, 10);
  const records = addresses.map((address) => {
    const bytes = Buffer.from(ipaddr.parse(address).toByteArray());
    const record = Buffer.from([0xc0, 12, 0, bytes.length === 4 ? 1 : 28, 0, 1, 0, 0, 0, 60, 0, 0]);
    record.writeUInt16BE(bytes.length, 10);
    return Buffer.concat([record, bytes]);
  });
  return { reply: Buffer.concat([head, query.subarray(12, at + 5), ...records]), known };
}

for (const [name, expected] of [
  ['four.example', ['93.184.216.34', '93.184.216.35']],
  ['FOUR.example.', ['93.184.216.34', '93.184.216.35']],
  ['six.example', ['2606:2800:220:1::1']],
  ['both.example', ['93.184.216.34', '2606:2800:220:1::1']],
  ['localhost', ['127.0.0.1', '::1']],
  ['api.localhost', ['127.0.0.1', '::1']],
] as const) {
  test(`${name} resolves to all of its IPv4 and IPv6 addresses`, async () => {
    const found = await resolve(name);
    assert.deepEqual(
      found.map(({ address }) => address),
      expected,
    );
    for (const { address, family } of found) assert.equal(family, address.includes(':') ? 6 : 4);
  });
}

test('localhost is not looked up', () => {
  assert.deepEqual(
    asked.filter((question) => question.includes('localhost')),
    [],
  );
});

for (const name of ['none.example', 'nowhere.example', 'broken.example']) {
  test(`${name} resolves to no address`, async () => {
    await assert.rejects(resolve(name));
  });
}

for (const [name, reason] of [
  ['nowhere.example', 'dns'],
  ['broken.example', 'dns'],
  // This look-up is given up before the connection times out.
  ['silent.example', 'dns'],
  ['trap.example', 'blocked_address'],
  ['inside.example', 'blocked_address'],
  ['api.localhost', 'blocked_address'],
] as const) {
  test(`a callback to ${name} is not sent: ${reason}`, async () => {
    const sender = createCallbackSender({
      clock: systemClock,
      allowed: { ranges: [], hosts: null },
      resolve,
      deadlineMilliseconds: 120_000,
    });
    const exchange = await sender.send({
      url: `https://${name}/`,
      headers: {},
      body: Buffer.from('{}'),
    });
    await sender.close();
    assert.deepEqual([exchange.reason, exchange.address], [reason, null]);
  });
}

test('a slow name server delays neither file access nor other look-ups', async () => {
  const waiting = Promise.allSettled(Array.from({ length: 40 }, () => resolve('held.example')));
  await readFile(import.meta.filename);
  assert.equal((await resolve('four.example')).length, 2);
  for (const send of release) send();
  assert.equal((await waiting).length, 40);
});
