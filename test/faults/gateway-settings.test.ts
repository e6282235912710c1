import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '#config.ts';

const main = { STRIPE_SECRET_KEY: 'sk_test_main', STRIPE_PUBLISHABLE_KEY: 'pk_test_main' };
const peach = {
  GATEWAY_PEACH_HYPERSWITCH_API_KEY: 'snd_peach',
  GATEWAY_PEACH_HYPERSWITCH_PUBLISHABLE_KEY: 'pk_snd_peach',
  GATEWAY_PEACH_HYPERSWITCH_API_URL: 'https://api.peach.example/',
  GATEWAY_PEACH_HYPERSWITCH_SCRIPT_URL: 'https://pay.peach.example/HyperLoader.js',
};
const both = { GATEWAYS: 'main, peach', ...main, ...peach };

test('GATEWAYS names the blocks of settings in their order, and main needs no prefix', () => {
  const { gateways } = readConfig({ ...both, GATEWAY_PEACH_CLOSED: 'true' });
  assert.deepEqual(
    gateways?.map(({ name, protocol, secretKey, isClosed }) => [
      ...[name, protocol, secretKey, isClosed ?? false],
    ]),
    [
      ['main', 'stripe', 'sk_test_main', false],
      ['peach', 'hyperswitch', 'snd_peach', true],
    ],
  );
  const prefixed = Object.fromEntries(
    Object.entries(main).map(([name, value]) => [`GATEWAY_MAIN_${name}`, value]),
  );
  const other = readConfig({ GATEWAYS: 'peach,main', ...prefixed, ...peach }).gateways;
  assert.deepEqual(
    other?.map(({ name, secretKey }) => [name, secretKey]),
    [
      ['peach', 'snd_peach'],
      ['main', 'sk_test_main'],
    ],
  );
  // A single gateway is called main, and a sandbox without keys starts its own.
  assert.deepEqual(
    readConfig(main).gateways?.map(({ name }) => name),
    ['main'],
  );
  assert.equal(readConfig({}).gateways, null);
});

test('a sandbox starts the test gateways that SANDBOX_GATEWAY names, and reads which of them are closed', () => {
  const listed = (env: NodeJS.ProcessEnv) =>
    readConfig(env).sandboxGateways.map(({ name, isClosed }) => [name, isClosed]);
  assert.deepEqual(listed({}), [['stripe', false]]);
  assert.deepEqual(listed({ SANDBOX_GATEWAY: 'both', GATEWAY_STRIPE_CLOSED: 'true' }), [
    ['stripe', true],
    ['hyperswitch', false],
  ]);
  assert.deepEqual(listed({ ...main, SANDBOX_GATEWAY: 'both' }), [], 'real keys start none');
  for (const [env, said] of [
    [{ GATEWAY_STRIPE_CLOSED: 'true' }, /Every gateway is closed/],
    [{ GATEWAY_STRIPE_CLOSED: 'no' }, /GATEWAY_STRIPE_CLOSED is "no"/],
    [{ SANDBOX_GATEWAY: 'all' }, /SANDBOX_GATEWAY/],
  ] as const) {
    assert.throws(() => readConfig(env), said);
  }
});

test('names, keys and closed gateways that cannot be right are refused at the start', () => {
  for (const [env, said] of [
    [{ GATEWAYS: 'main,main', ...main }, /must be different names/],
    [{ GATEWAYS: 'main,Peach', ...main }, /must be different names/],
    [{ GATEWAYS: 'main,', ...main }, /must be different names/],
    [{ GATEWAYS: 'main,peach', ...main }, /GATEWAYS names peach, but none of its keys is set/],
    [{ GATEWAYS: 'peach', ...peach, ...main }, /GATEWAYS does not name main/],
    [{ ...both, GATEWAY_PEACH_CLOSED: 'yes' }, /GATEWAY_PEACH_CLOSED is "yes"/],
    [
      { ...both, GATEWAY_PEACH_CLOSED: 'true', GATEWAY_MAIN_CLOSED: 'true' },
      /Every gateway is closed/,
    ],
    [
      { ...both, GATEWAY_PEACH_STRIPE_SECRET_KEY: 'sk_test_two' },
      /The keys of two gateways are set for peach/,
    ],
    [
      { ...both, GATEWAYS: 'main,two', GATEWAY_TWO_STRIPE_SECRET_KEY: 'sk_test_main' },
      /main and two have the same key/,
    ],
    [{ ...both, GATEWAY_PEACH_HYPERSWITCH_API_URL: 'http://peach.example' }, /peach: .*https/],
  ] as const) {
    assert.throws(() => readConfig(env), said);
  }
});
