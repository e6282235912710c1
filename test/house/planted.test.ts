import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { faults } from '../planted/faults.ts';
import { plant } from '../planted/plant.ts';

const root = path.join(import.meta.dirname, '../..');

// `npm run planted` takes long and is not part of the tests. Its table has to stay true.
test('every planted fault finds its text once and names tests that exist', () => {
  const files = fs.globSync('{src,test}/**/*.test.ts', { cwd: root });
  assert.equal(new Set(faults.map(({ name }) => name)).size, faults.length);
  for (const fault of faults) {
    const text = fs.readFileSync(path.join(root, fault.file), 'utf8');
    assert.notEqual(plant(text, fault), text);
    for (const part of fault.tests) {
      assert.ok(
        files.some((file) => file.includes(part)),
        `${fault.name} names ${part}`,
      );
    }
  }
});
