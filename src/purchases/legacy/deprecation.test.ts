import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultSunset, deprecatedSince, deprecationHeaders } from './deprecation.ts';

test('the headers have the form that their RFCs require', () => {
  for (const legacySunset of [
    defaultSunset,
    '2027-02-28',
    '2027-09-09',
    '2028-02-29',
    '2031-12-31',
  ]) {
    const headers = deprecationHeaders({ baseUrl: 'https://pay.example', legacySunset });
    assert.deepEqual(headers, {
      deprecation: `@${Date.parse(deprecatedSince.toString()) / 1000}`,
      sunset: new Date(legacySunset).toUTCString(),
      link: '<https://pay.example/docs/api/v2>; rel="successor-version"',
    });
  }
});
