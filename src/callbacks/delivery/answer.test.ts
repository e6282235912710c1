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
