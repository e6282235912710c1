import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identifiersOf, namesPerson, withoutPerson } from './pseudonyms.ts';

const email = 'nd@example.com';
const apart = identifiersOf([{ email, first_name: 'Nomvula', last_name: 'van Wyk' }]);
const inOneField = identifiersOf([{ email, first_name: 'Nomvula van Wyk' }]);

test('a name is found however its parts are sent', () => {
  for (const identifiers of [apart, inOneField]) {
    for (const text of [
      'for Nomvula van Wyk',
      'van Wyk Nomvula',
      'NOMVULA.VAN%20WYK',
      'Nomvula_van Wyk',
    ]) {
      assert.ok(namesPerson(text, identifiers), text);
    }
    assert.ok(!namesPerson('order 17', identifiers));
  }
});

test('one word of a name is erased in what people wrote, only as a whole word', () => {
  const text = 'nomvula phoned; Wyk asked. Wykham did not.';
  for (const identifiers of [apart, inOneField]) {
    assert.equal(
      withoutPerson(text, identifiers, 'written by people'),
      '[erased] phoned; [erased] asked. Wykham did not.',
    );
    assert.equal(withoutPerson(text, identifiers), text);
  }
});
