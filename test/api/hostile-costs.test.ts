import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
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

// The cost of a request is the number of times that blocks of our code and of the libraries ran. It
// is the same on every machine, whatever else runs there.

let service: Service;
let account: Account;
let link: string;
const profiler = new Session();
before(async () => {
  service = await startService({});
  account = await createAccount(service);
  const id = await createCheckout(service, account);
  link = paymentToken(service.deps.sealing, { merchant_id: account.merchant.id, id });
  profiler.connect();
  await profiler.post('Profiler.enable');
  await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
});
after(async () => {
  profiler.disconnect();
  await service.close();
});

/** How many times blocks of code have run since the last call. */
async function countSteps(): Promise<number> {
  const { result } = await profiler.post('Profiler.takePreciseCoverage');
  const ranges = result.flatMap(({ functions }) => functions.flatMap((one) => one.ranges));
  return ranges.reduce((sum, { count }) => sum + count, 0);
}

let address = 0;

/** Counts the steps of one request, which must not be answered with a server error. */
async function stepsOf(path: string, body: string, headers: object = {}): Promise<number> {
  // The first request of a kind also compiles code, so its steps are not counted.
  await post(path, body, headers);
  await countSteps();
  const { statusCode } = await post(path, body, headers);
  const steps = await countSteps();
  assert.ok(statusCode < 500, `${path}: ${statusCode}`);
  return steps;
}

function post(path: string, body: string, headers: object) {
  address += 1;
  return service.app.inject({
    method: 'POST',
    url: path.replace('{link}', link),
    // Each request comes from another network, because this test is not about limits.
    remoteAddress: `10.${(address >> 16) & 255}.${(address >> 8) & 255}.${address & 255}`,
    headers: {
      'content-type': 'application/json',
      ...(path.startsWith('/api/') && { authorization: `Bearer ${account.client_secret}` }),
      ...headers,
    },
    payload: body,
  });
}

const form = { 'content-type': 'application/x-www-form-urlencoded' };
const within = (checkout: string) =>
  JSON.stringify(checkoutBody()).replace('"checkout":{', () => `"checkout":{${checkout}`);

/** Makes bodies of at most `bytes` bytes: `start`, then `unit` repeatedly, then `end`. */
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

/** Requests that strangers can send. */
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

describe('the largest body of a known caller costs at most 20 steps a byte, and the work is linear', () => {
  for (const [about, path, body, headers] of known) {
    test(about, async () => {
      const [quarter, large] = [body(largest / 4), body(largest)];
      const few = await stepsOf(path, quarter, headers);
      const many = await stepsOf(path, large, headers);
      assert.ok(many < 20 * Buffer.byteLength(large), `${many} steps`);
      // The body is four times as large, so the work may be about four times as much. The minimum
      // is there because even a small request costs something.
      assert.ok(many < 5 * Math.max(few, 10_000), `${many} steps after ${few}`);
    });
  }
});

describe('a body of any size from a stranger costs less than 50,000 steps', () => {
  for (const [about, path, body, headers] of strange) {
    for (const bytes of [4 * 1024, 16 * 1024, largest, 4 * largest]) {
      test(`${about}, ${bytes / 1024} KiB`, async () => {
        const steps = await stepsOf(path, body(bytes), headers);
        assert.ok(steps < 50_000, `${steps} steps`);
      });
    }
  }
});
