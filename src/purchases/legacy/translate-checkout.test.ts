import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject, JsonValue } from '#platform/http/json.ts';
import { fieldMapping, itemMapping, legacyPath, translateCheckout } from './translate-checkout.ts';

const whole = {
  purchaseAmount: 150000,
  currency: 'ZAR',
  merchant: { notify_url: 'n', return_url: 'r', merchantReference: 'm', mode: 'live' },
  customer: {
    name: 'Thandi',
    lastName: 'Dlamini',
    emailAddress: 'e',
    telephoneNumber: 't',
    billingAddress: 'b',
  },
  purchase: { order_id: 'o', items: '[]', purchaseDate: '2026-11-15' },
};

test('every v1 field of the spec becomes its v2 field, and dropped fields disappear', () => {
  assert.deepEqual(translateCheckout(whole), {
    checkout: {
      amount: 150000,
      currency: 'ZAR',
      client_reference_id: 'o',
      notify_url: 'n',
      success_url: 'r',
      customer: {
        first_name: 'Thandi',
        last_name: 'Dlamini',
        email: 'e',
        phone_number: 't',
        billing_address: 'b',
      },
      line_items: [],
    },
    errors: [],
  });
});

test('absent fields stay absent, and unknown fields are ignored', () => {
  assert.deepEqual(translateCheckout({}), { checkout: { customer: {} }, errors: [] });
  const unknown = { amount: 5, checkout: { amount: 7 }, merchant: { cancel_url: 'x' } };
  assert.deepEqual(translateCheckout(unknown), { checkout: { customer: {} }, errors: [] });
});

test('a number may be a string of decimal digits and nothing else', () => {
  const amountOf = (purchaseAmount: JsonValue) =>
    translateCheckout({ purchaseAmount }).checkout.amount;
  for (const [text, number] of [
    ['150000', 150000],
    ['0', 0],
    ['-5', -5],
  ] as const) {
    assert.equal(amountOf(text), number);
  }
  const others = [
    '',
    ' 5',
    '5 ',
    '+5',
    '05',
    '5.0',
    '1e3',
    '0x10',
    '1500,00',
    '٣',
    'NaN',
    '9'.repeat(17),
  ];
  for (const other of [...others, true, null, [5], { value: 5 }, 1.5]) {
    assert.deepEqual(amountOf(other), other);
  }
});

test('an order number becomes its digits, and other values are left for validation', () => {
  const referenceOf = (order_id: JsonValue) =>
    translateCheckout({ purchase: { order_id } }).checkout.client_reference_id;
  for (const [number, digits] of [
    [1001, '1001'],
    [0, '0'],
    [9007199254740991, '9007199254740991'],
  ] as const) {
    assert.equal(referenceOf(number), digits);
  }
  for (const other of ['order-1', '', 1.5, -7, 2 ** 53, true, null, [7], { id: 7 }]) {
    assert.deepEqual(referenceOf(other), other);
  }
});

describe('items', () => {
  const itemsOf = (items: JsonValue) => {
    const { checkout, errors } = translateCheckout({ purchase: { items } });
    return errors.length > 0 ? errors : checkout.line_items;
  };
  const boots = { description: 'Boots', price: 5, qty: 2, sku: 'x' };
  const translated = { name: 'Boots', amount: 5, quantity: 2 };
  const malformed = [
    { path: 'purchase.items', problem: 'must be a JSON array, as text or as it is' },
  ];
  const cases: [what: string, items: JsonValue, line_items: unknown][] = [
    ['an array', [boots], [translated]],
    ['its JSON text', JSON.stringify([boots]), [translated]],
    ['its JSON text, spaced', ` [ ${JSON.stringify(boots)} ]\n`, [translated]],
    ['numbers as strings', [{ ...boots, price: '5', qty: '2' }], [translated]],
    ['a part of an item', [{ description: 'Boots' }], [{ name: 'Boots' }]],
    ['v2 names, which v1 does not know', [translated], [{}]],
    ['an empty string', '', undefined],
    ['null', null, undefined],
    ['a string that is not JSON', 'Boots', malformed],
    ['JSON text that ends early', '[{"description":"Boots"', malformed],
    ['a member twice', '[{"qty":1,"qty":2}]', malformed],
    ['a prototype', '[{"__proto__":{"a":1}}]', malformed],
    ['deeply nested arrays', '['.repeat(40) + ']'.repeat(40), malformed],
    ['more than one JSON text', '[],[]', malformed],
    ['an object', { '5': boots }, { '5': boots }],
    ['the text of an object', '{"a":1}', { a: 1 }],
    ['the text of a number', '5', 5],
    ['a number', 5, 5],
    ['an array of other values', [1, null, 'x', []], [1, null, 'x', []]],
  ];
  for (const [what, items, line_items] of cases) {
    test(what, () => assert.deepEqual(itemsOf(items), line_items));
  }
});

test('a group that is not an object is reported once, by its own name', () => {
  for (const group of ['merchant', 'customer', 'purchase']) {
    for (const value of [5, 'x', null, [], true]) {
      const { errors } = translateCheckout({ ...whole, [group]: value } as JsonObject);
      assert.deepEqual(errors, [{ path: group, problem: 'must be an object' }]);
    }
  }
});

test('errors name the v1 field of a v2 field', () => {
  for (const { v1, v2 } of fieldMapping) assert.equal(legacyPath(`checkout.${v2}`), v1);
  for (const { v1, v2 } of itemMapping) {
    assert.equal(legacyPath(`checkout.line_items[12].${v2}`), `purchase.items[12].${v1}`);
  }
  assert.equal(legacyPath('checkout.line_items[3]'), 'purchase.items[3]');
  assert.equal(legacyPath('checkout.cancel_url'), 'merchant.return_url');
  assert.equal(legacyPath(''), '');
});
