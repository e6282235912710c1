import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  createCheckout,
  type Service,
  startService,
} from '../support/service.ts';

// Compares the costs of requests, as CPU time of this process. Every cost is a ratio to that of a
// plain request in the same run, so that neither the machine nor its other work decides.

let service: Service;
let account: Account;
let link: string;
const plain = JSON.stringify(checkoutBody());
before(async () => {
  service = await startService({});
  account = await createAccount(service);
  const id = await createCheckout(service, account);
  link = paymentToken(service.deps.sealing, { merchant_id: account.merchant.id, id });
  for (let round = 0; round < 50; round++) await cost('/api/checkouts', plain);
});
after(() => service.close());

let address = 0;

/** Microseconds of CPU, and that the answer was no fault of ours. */
async function cost(path: string, body: string | Buffer, headers: object = {}): Promise<number> {
  address += 1;
  const start = process.cpuUsage();
  const { statusCode } = await service.app.inject({
    method: 'POST',
    url: path.replace('{link}', link),
    // From another network each time: limits are not what this measures.
    remoteAddress: `10.${(address >> 16) & 255}.${(address >> 8) & 255}.${address & 255}`,
    headers: {
      'content-type': 'application/json',
      ...(path.startsWith('/api/') && { authorization: `Bearer ${account.client_secret}` }),
      ...headers,
    },
    payload: body,
  });
  const { user, system } = process.cpuUsage(start);
  assert.ok(statusCode < 500, `${path}: ${statusCode}`);
  return user + system;
}

/**
 * How many plain requests a request costs. Both are measured in turn, so that both meet the same
 * machine, and the least of each counts: more than that is garbage collection or other work.
 */
async function ratioOf(path: string, body: string, headers: object = {}): Promise<number> {
  let [least, leastPlain] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 12; round++) {
    // Opening a payment link costs more reads than a create, so compare it with itself.
    const isLink = path.includes('{link}');
    const cheap = isLink ? cost(path, '{}') : cost('/api/checkouts', plain);
    leastPlain = Math.min(leastPlain, await cheap);
    least = Math.min(least, await cost(path, body, headers));
  }
  return least / leastPlain;
}

const form = { 'content-type': 'application/x-www-form-urlencoded' };
const within = (checkout: string) =>
  JSON.stringify(checkoutBody()).replace('"checkout":{', () => `"checkout":{${checkout}`);

/** `unit` again and again up to a size. */
function filled(start: string, unit: string | ((index: number) => string), end: string) {
  return (bytes: number) => {
    const parts: string[] = [];
    for (let index = 0, length = Buffer.byteLength(start + end); ; index++) {
      const part = typeof unit === 'string' ? unit : unit(index);
      length += Buffer.byteLength(part);
      if (length > bytes) break;
      parts.push(part);
    }
    return start + parts.join('') + end;
  };
}

const inside = (start: string, unit: string | ((index: number) => string), end: string) => {
  const [before = '', after = ''] = within('"x":@,').split('"x":@');
  return filled(before + start, unit, end + after);
};

type Family = [about: string, path: string, body: (bytes: number) => string, headers?: object];

const forged = { 'x-signature': `${'A'.repeat(86)}==` };
const checkouts = '/api/checkouts';
const consent = '{"number_of_payments":3,"card_token":"x","consent":{"version":"x","payments":[';

/**
 * Requests that a caller with a client secret can send. The caller is known, and its requests are
 * limited.
 */
const known: Family[] = [
  ['line items that are empty', checkouts, inside('"line_items":[', '{},', '{}],"y":1')],
  ['line items of every type', checkouts, inside('"line_items":[', '1,"",[],null,', '0],"y":1')],
  ['unknown members', checkouts, inside('"x":{', (i) => `"m${i}":1,`, '"z":1}')],
  ['escaped member names', checkouts, inside('"x":{', (i) => `"\\u006d${i}":1,`, '"z":1}')],
  ['decimals', checkouts, inside('"x":[', '1.0,', '0]')],
  ['one long decimal', checkouts, inside('"x":1.', '0', '1')],
  ['white space', checkouts, inside('"x":', ' ', '1')],
  ['one repeated member', checkouts, inside('"x":{', '"a":1,', '"a":1}')],
  ['empty objects', checkouts, inside('"x":[', '{},', '{}]')],
  ['a broken end', checkouts, filled('{"checkout":{"x":[', '{"a":1},', '')],
  ['a long reference', checkouts, inside('"client_reference_id":"', 'é', '","y":1')],
  ['a long e-mail address', checkouts, inside('"customer":{"email":"', 'a.', '@b.za"},"y":1')],
  ['a long URL', checkouts, inside('"notify_url":"https://a.example/', '%41', '","y":1')],
  ['a long host name', checkouts, inside('"notify_url":"https://', 'a.', 'example","y":1')],
  ['a wrong signature', checkouts, inside('"x":[', '"é/",', '1]'), forged],
  ['a long checkout_id', '/api/refunds', filled('{"amount":1,"checkout_id":"', 'a', '"}')],
];

/** Requests that anyone can send. */
const strange: Family[] = [
  ['a form of many fields', '/login', filled('', (i) => `f${i}=1&`, 'a=1'), form],
  ['a form of nested fields', '/login', filled('', (i) => `a[b][${i}]=%41&`, 'a=1'), form],
  ['a form of brackets', '/login', filled('', 'a[', '=1'), form],
  ['JSON of many members', '/login', filled('{', (i) => `"m${i}":1,`, '"z":1}')],
  ['a v1 checkout', '/payment/checkout', filled('', (i) => `f${i}=1&`, 'a=1'), form],
  ['consent to many payments', '/pay/{link}/pay', filled(consent, '{},', '{}]}}')],
  ['a payment on an unknown link', `/pay/${'x'.repeat(64)}/pay`, filled('{"x":[', '{},', '{}]}')],
];

const largest = 256 * 1024;

describe('the largest body of a known caller costs at most 60 plain requests, in linear time', () => {
  for (const [about, path, body, headers] of known) {
    test(about, async () => {
      const large = await ratioOf(path, body(largest), headers);
      assert.ok(large < 60, `${large.toFixed(1)} ×`);
      const quarter = await ratioOf(path, body(largest / 4), headers);
      const growth = large / Math.max(quarter, 1);
      // Four times the size; twice that leaves room for the measurement.
      assert.ok(growth < 8, `${growth.toFixed(1)} × for 4 × the size`);
    });
  }
});

describe('the largest body of a stranger costs less than five plain requests', () => {
  for (const [about, path, body, headers] of strange) {
    for (const bytes of [4 * 1024, 16 * 1024, largest, 4 * largest]) {
      test(`${about}, ${bytes / 1024} KiB`, async () => {
        let ratio = Number.POSITIVE_INFINITY;
        // Another process may take the processor during a whole measurement.
        for (let tries = 0; tries < 5 && ratio >= 5; tries += 1) {
          ratio = Math.min(ratio, await ratioOf(path, body(bytes), headers));
        }
        assert.ok(ratio < 5, `${ratio.toFixed(1)} ×`);
      });
    }
  }
});
