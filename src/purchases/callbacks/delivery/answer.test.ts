import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nextAttemptAt, readRedirectUrl, readRetryAfter } from './answer.ts';

const started = Temporal.Instant.from('2026-03-02T08:00:00Z');
const after = (minutes: number) => started.add({ seconds: minutes * 60 });

describe('the next attempt', () => {
  for (const [asked, minutes] of [
    [null, 10],
    [-5, 10],
    [9, 10],
    [10, 10],
    [10.5, 10.5],
    [60, 60],
    [61, 60],
  ] as const) {
    test(`a receiver that asks for ${asked ?? 'no'} minutes: after ${minutes}`, () => {
      const next = nextAttemptAt(started, asked === null ? null : after(asked));
      assert.equal(next.toString(), after(minutes).toString());
    });
  }
});

describe('Retry-After', () => {
  for (const [status, header, seconds] of [
    [429, '90', 90],
    [503, ' 90 ', 90],
    [429, '99999999999999999999', 3600],
    [429, 'Mon, 02 Mar 2026 08:01:30 GMT', 90],
    [429, 'Mon, 02 Mar 2026 07:59:00 GMT', -60],
    [429, '2026-03-02T08:01:30Z', null],
    [429, '-90', null],
    [429, '', null],
    [429, undefined, null],
    [429, ['90', '90'], null],
    [500, '90', null],
    [200, '90', null],
    [null, '90', null],
  ] as const) {
    test(`${status} with ${JSON.stringify(header)}: ${seconds}`, () => {
      assert.equal(
        readRetryAfter(status, header as string | string[] | undefined, started),
        seconds,
      );
    });
  }
});

test('redirect_url of v2 and redirect of v1 are different members', () => {
  const body = Buffer.from(
    '{"redirect_url":"https://two.example/","redirect":"https://one.example/"}',
  );
  assert.equal(readRedirectUrl(body), 'https://two.example/');
  assert.equal(readRedirectUrl(body, 'redirect'), 'https://one.example/');
});

describe('redirect_url with a broken encoding is ignored', () => {
  const around = (...bytes: number[]) =>
    Buffer.concat([
      Buffer.from('{"redirect_url":"https://shop.example/'),
      Buffer.from(bytes),
      Buffer.from('"}'),
    ]);
  for (const [what, body] of [
    ['Latin-1', around(0xe9)],
    ['overlong UTF-8', around(0xc0, 0xaf)],
    ['a surrogate in UTF-8', around(0xed, 0xa0, 0x80)],
    ['UTF-8 that is cut off', around(0xe6, 0x97)],
    ['a lone surrogate', Buffer.from(String.raw`{"redirect_url":"https://shop.example/\ud83d"}`)],
    ['a percent sign alone', around(0x25)],
    ['a percent sign and one digit', Buffer.from('{"redirect_url":"https://shop.example/?a=%e"}')],
    ['a percent sign and letters', Buffer.from('{"redirect_url":"https://shop.example/%zz"}')],
  ] as const) {
    test(what, () => assert.equal(readRedirectUrl(body), null));
  }

  for (const url of [
    'https://shop.example/dankie/日本',
    'https://shop.example/\u{1f600}',
    'https://shop.example/caf%C3%A9?a=%2f#%e9',
  ]) {
    test(`${url} is honoured`, () => {
      assert.equal(readRedirectUrl(Buffer.from(JSON.stringify({ redirect_url: url }))), url);
    });
  }
});
