import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApiError, fetchList, offerReauthentication, readFile, sendChange } from './api.ts';

const refusal = () =>
  Response.json({ error: { code: 'proof_needed', message: 'Confirm.' } }, { status: 403 });
const broken = () =>
  new Response(new ReadableStream({ start: (stream) => stream.error(new TypeError('lost')) }));
const isUnreachable = (error: unknown) => error instanceof ApiError && error.status === 0;

describe('a request by the console', () => {
  test('shares one question about the passkey with the others that wait for it', async (t) => {
    const asked: string[] = [];
    const person = Promise.withResolvers<boolean>();
    offerReauthentication((what) => {
      asked.push(what);
      return person.promise;
    });
    t.after(() => offerReauthentication(null));
    let isConfirmed = false;
    t.mock.method(globalThis, 'fetch', async (path: string) =>
      isConfirmed ? Response.json(path) : refusal(),
    );
    const { signal } = new AbortController();
    const both = [
      sendChange('POST', '/act', {}, 'Refund R 10'),
      fetchList('/list', {}, signal),
    ] as const;
    // Each request is refused before the person answers.
    await new Promise(setImmediate);
    isConfirmed = true;
    person.resolve(true);
    assert.deepEqual(await Promise.all(both), ['/act', '/list']);
    assert.deepEqual(asked, ['Refund R 10']);
  });

  test('says why a list is not shown if the person does not use the passkey', async (t) => {
    offerReauthentication(async () => false);
    t.after(() => offerReauthentication(null));
    t.mock.method(globalThis, 'fetch', async () => refusal());
    const { signal } = new AbortController();
    await assert.rejects(fetchList('/list', {}, signal), { code: 'proof_needed' });
  });

  test('counts as unanswered if the connection breaks off in the middle of the answer', async (t) => {
    t.mock.method(globalThis, 'fetch', async () => broken());
    await assert.rejects(sendChange('POST', '/act'), isUnreachable);
    await assert.rejects(readFile('/list.csv', 'Download list.csv'), isUnreachable);
    t.mock.method(globalThis, 'fetch', async () => new Response('<html>a proxy</html>'));
    await assert.rejects(sendChange('POST', '/act'), isUnreachable);
  });
});
