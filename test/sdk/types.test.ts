import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { writeTypes } from '../../sdk/generate-types.ts';
import { startService } from '../support/service.ts';

const file = new URL('../../sdk/src/api.ts', import.meta.url);

test("the SDK's types are those of the served descriptions", async () => {
  const service = await startService();
  try {
    const read = async (url: string) => (await service.app.inject(url)).json();
    const text = writeTypes(await read('/docs/api/v2'), await read('/api-docs-intermediary'));
    if (process.env.TRANCHE_WRITE_TYPES) await writeFile(file, text);
    assert.equal(
      await readFile(file, 'utf8'),
      text,
      'the API has changed: TRANCHE_WRITE_TYPES=1 npm test -- sdk/types',
    );
  } finally {
    await service.close();
  }
});
