import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { listPlaintextHosts } from '#config/addresses.ts';
import { BadSettings, readConfig } from '#config.ts';
import { selfSigned } from '../support/certificates.ts';
import { productionSettings } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const key = Buffer.alloc(32, 1).toString('base64');

function problemsOf(env: NodeJS.ProcessEnv): string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    assert.ok(error instanceof BadSettings);
    // The printed message has a line for each problem.
    for (const problem of error.problems) assert.ok(error.message.includes(`- ${problem}`));
    return error.problems;
  }
}

/** Every setting with each kind of value that it refuses. */
const bad: [name: string, values: string[], also?: NodeJS.ProcessEnv][] = [
  ['TRANCHE_ENV', ['prod', 'Sandbox', 'sandbox,production']],
  ['PORT', ['web', '-1', '65536', '80.5', '0x50', '1e3', '3000 4000']],
  ['GATEWAY_PORT', ['web', '70000']],
  ['SHOP_PORT', ['web', '70000']],
  ['METRICS_PORT', ['web', '70000']],
  [
    'BASE_URL',
    [
      'pay.example',
      'ftp://pay.example',
      'https://',
      'https://pay.example?a=1',
      'https://pay.example/#a',
      'https://me@pay.example',
      'https://pay.example/tranche',
      'javascript:alert(1)',
    ],
  ],
  [
    'DATABASE_URL',
    ['mysql://db', 'localhost:5432', 'postgres', 'postgres://[', 'postgresql://db:port/x'],
  ],
  ['MASTER_KEY', ['short', 'x'.repeat(44), 'ab'.repeat(31), Buffer.alloc(31).toString('base64')]],
  ['MASTER_KEY_PREVIOUS', ['short'], { MASTER_KEY: key }],
  ['MASTER_KEY_PREVIOUS', [key]],
  ['SEALING_CIPHER', ['aes', 'AES-256-GCM', 'aes-256-cbc']],
  ['REDIS_URL', ['http://cache', 'cache:6379', 'redis://[']],
  ['RATE_LIMIT_STORE', ['disk', 'redis', 'Memory']],
  ['RATE_LIMIT_STORE', ['memory'], { DATABASE_URL: 'postgres://db/tranche' }],
  ['CALLBACK_ALLOW', ['everywhere', '10.0.0.0', '10.0.0.0/33', '10.0.0.0/8,::1/129']],
  ['CALLBACK_HOSTS', ['any', '*', '*.', 'shop.example,', 'https://shop.example', 'shop.example/x']],
  ['TRUST_PROXY', ['yes', '10.0.0.0/33', '10.0.0', '::1/129', '10.0.0.1,proxy.example', '1.5']],
  ['LEGACY_SUNSET', ['soon', '2027', '2027-13-01', '2027-02-30', '2026-11-01', '01/11/2027']],
  ['FOUR_EYES_ABOVE', ['-1', '100.50', 'never', 'None', '1e6']],
  ['NEW_ACCOUNT_BUSINESS_DAYS', ['-1', '1.5', 'day', '11']],
  ['PAYOUT_FROM_HOLDER', ['Tranche (Pty) Ltd']],
  [
    'PAYOUT_FROM_ACCOUNT',
    ['1234', '62 00 00', 'ZA12'],
    { PAYOUT_FROM_HOLDER: 'Tranche', PAYOUT_FROM_BRANCH_CODE: '250655' },
  ],
  ['SECOND_PERSON_HOURS', ['-1', '1.5', 'day', '721']],
  ['LOG_LEVEL', ['loud', 'INFO', '30']],
  ['TLS_CERTIFICATE', ['certificate', selfSigned('pay.example').cert]],
  ['TLS_CERTIFICATE', [selfSigned('pay.example').cert], { TLS_KEY: selfSigned('pay.example').key }],
  ['ACCEPT_INSECURE', ['true', 'database', 'any-proxy,everything']],
];

describe('settings', () => {
  for (const [name, values, also] of bad) {
    for (const value of values) {
      const beside = also ? ` beside ${Object.keys(also)}` : '';
      test(`${name}=${value.split('\n', 1)}${beside} is refused by name`, () => {
        const problems = problemsOf({ ...also, [name]: value });
        assert.equal(problems.length, 1, problems.join('\n'));
        assert.match(problems[0] ?? '', new RegExp(`^${name}\\b`));
      });
    }
  }

  test('are all listed when several are bad', () => {
    // Only the first line of each setting: later ones are about two settings together.
    const first = [...bad].reverse().map(([name, [value]]) => [name, value]);
    const problems = problemsOf(Object.fromEntries(first));
    for (const [name] of bad) {
      assert.ok(
        problems.some((problem) => problem.startsWith(name)),
        `${name} is not named`,
      );
    }
  });

  test('that hold secrets are not repeated in the message', () => {
    const problems = problemsOf({
      MASTER_KEY: 'the-secret-itself',
      DATABASE_URL: 'mysql://me:password@db',
      REDIS_URL: 'http://me:password@cache',
      BASE_URL: 'https://me:password@pay.example',
    });
    assert.equal(problems.length, 4);
    assert.doesNotMatch(problems.join('\n'), /the-secret-itself|password/);
  });

  test('that are empty or only white space count as not set', () => {
    const names = new Set(bad.map(([name]) => name));
    const env = Object.fromEntries([...names].map((name) => [name, ' ']));
    assert.deepEqual(readConfig(env), readConfig({}));
  });
});

describe('in production', () => {
  const usable = productionSettings;

  test('complete settings are accepted', () => {
    const config = readConfig(usable);
    assert.equal(config.environment, 'production');
    assert.deepEqual(config.callbackAllow, { ranges: [], hosts: null });
    assert.equal(config.fourEyesAbove, 1_000_000);
    assert.deepEqual([config.secondPersonHours, readConfig({}).secondPersonHours], [24, 0]);
    assert.equal(readConfig({ ...usable, FOUR_EYES_ABOVE: 'none' }).fourEyesAbove, null);
    assert.equal(config.payingAccount, null);
    // The key that a rotation replaces may be weak.
    assert.deepEqual(problemsOf({ ...usable, MASTER_KEY_PREVIOUS: 'ab'.repeat(32) }), []);
  });

  test('plain http is accepted on loopback only', () => {
    assert.deepEqual(problemsOf({ ...usable, BASE_URL: 'http://127.0.0.1:3000' }), []);
    for (const BASE_URL of ['http://pay.example', 'http://127.0.0.1.example', 'http://10.0.0.1']) {
      assert.deepEqual(problemsOf({ ...usable, BASE_URL }), [
        'BASE_URL must be https in production.',
      ]);
    }
  });

  /**
   * Settings that production refuses, the words of the refusal, and the name that accepts the risk.
   */
  const insecure: [env: NodeJS.ProcessEnv, refusal: RegExp, risk: string | null][] = [
    [{ MASTER_KEY: Buffer.alloc(32).toString('base64') }, /^MASTER_KEY must be 32 random/, null],
    [{ MASTER_KEY: 'ab'.repeat(32) }, /^MASTER_KEY must be 32 random/, null],
    [
      { MASTER_KEY: Buffer.from('this is my very secret password!').toString('base64') },
      /^MASTER_KEY must be 32 random/,
      null,
    ],
    ...['a very secret passphrase of 31!\n', 'a caf\u00e9 passphrase of 31 letters'].map(
      (text): [NodeJS.ProcessEnv, RegExp, null] => [
        { MASTER_KEY: Buffer.from(text).toString('base64') },
        /^MASTER_KEY must be 32 random/,
        null,
      ],
    ),
    [
      { MASTER_KEY: 'correct-horse-battery-staple-and-some-more-w' },
      /^MASTER_KEY must be 32 random/,
      null,
    ],
    [{ NODE_TLS_REJECT_UNAUTHORIZED: '0' }, /^NODE_TLS_REJECT_UNAUTHORIZED must not/, null],
    [{ STRIPE_WEBHOOK_SECRET: 'w' }, /^STRIPE_WEBHOOK_SECRET must have/, null],
    [
      { DATABASE_URL: 'postgres://db.example/t?sslmode=verify-full&sslmode=disable' },
      /^DATABASE_URL must have sslmode at most once/,
      null,
    ],
    [{ TRUST_PROXY: '99' }, /^TRUST_PROXY must be at most/, 'any-proxy'],
    [{ FOUR_EYES_ABOVE: '' }, /^FOUR_EYES_ABOVE must be set in production/, null],
    [{ ISSUER_NAME: '' }, /^ISSUER_NAME must be set in production/, null],
    [{ DATABASE_URL: '' }, /^DATABASE_URL must be set in production/, null],
    [{ TRUST_PROXY: 'true' }, /^TRUST_PROXY must be/, 'any-proxy'],
    ...['0.0.0.0/0', '10.0.0.5,128.0.0.0/1', '::/0', '::ffff:0:0/96'].map(
      (TRUST_PROXY): [NodeJS.ProcessEnv, RegExp, string] => [
        { TRUST_PROXY },
        /^TRUST_PROXY: .* narrower/,
        'any-proxy',
      ],
    ),
    [
      { ALERT_WEBHOOK_URL: 'http://hooks.example/x', ALERT_WEBHOOK_SECRET: 'x'.repeat(32) },
      /must be https/,
      'alerts-plaintext',
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://otel.example:4318' },
      /must be https/,
      'traces-plaintext',
    ],
    ...['0.0.0.0', '0', '::', '[::]', '::0', '::ffff:0.0.0.0'].map(
      (METRICS_HOST): [NodeJS.ProcessEnv, RegExp, string] => [
        { METRICS_HOST },
        /must name one address/,
        'metrics-everywhere',
      ],
    ),
    ...[
      'smtp://mail.example?requireTLS=false',
      'smtp://mail.example?ignoreTLS=true',
      'smtp://mail.example?opportunisticTLS=true',
      'smtps://mail.example?tls.rejectUnauthorized=false',
      'smtp://127.0.0.1?host=10.0.0.7&ignoreTLS=true',
      'smtp://127.0.0.1?service=gmail&secured=true',
    ].map((MAIL_URL): [NodeJS.ProcessEnv, RegExp, string] => [
      { MAIL_URL, MAIL_FROM: 'pay@shop.example' },
      /^MAIL_URL must not weaken TLS/,
      'mail-plaintext',
    ]),
    [{ REDIS_URL: 'redis://cache.example' }, /rediss:\/\//, 'redis-plaintext'],
    ...[
      'postgres://db.example/tranche',
      'postgres://db.example/tranche?sslmode=disable',
      'postgres://db.example/tranche?sslmode=no-verify',
      'postgres://db.example/tranche?sslmode=prefer',
      'postgres://db.example/tranche?sslmode=require&uselibpqcompat=true',
      'postgres://127.0.0.1/tranche?host=10.0.0.7',
      'postgres://127.0.0.1/tranche?host=127.0.0.1&host=10.0.0.7',
      'postgres:///tranche',
    ].map((DATABASE_URL): [NodeJS.ProcessEnv, RegExp, string] => [
      { DATABASE_URL },
      /^DATABASE_URL must ask for TLS/,
      'database-plaintext',
    ]),
  ];
  for (const [env, refusal, risk] of insecure) {
    test(`${JSON.stringify(env).slice(0, 120)} is refused${risk ? `, unless ${risk} is accepted` : ''}`, () => {
      const problems = problemsOf({ ...usable, ...env });
      assert.equal(problems.length, 1, problems.join('\n'));
      assert.match(problems[0] ?? '', refusal);
      if (risk === null) return;
      assert.match(problems[0] ?? '', new RegExp(`add ${risk} to ACCEPT_INSECURE`));
      assert.deepEqual(problemsOf({ ...usable, ...env, ACCEPT_INSECURE: risk }), []);
    });
  }

  test('secrets may come from files, and a file that cannot be read is named', async (t) => {
    const folder = await temporaryFolder();
    t.after(folder.remove);
    const file = path.join(folder.path, 'master-key');
    await writeFile(file, `${usable.MASTER_KEY}\n`);
    const config = readConfig({ ...usable, MASTER_KEY: '', MASTER_KEY_FILE: file });
    assert.deepEqual(config, readConfig(usable));
    assert.match(
      problemsOf({ ...usable, MASTER_KEY_FILE: file }).join(),
      /^MASTER_KEY and MASTER_KEY_FILE are both set/,
    );
    const missing = problemsOf({ ...usable, REDIS_URL_FILE: path.join(folder.path, 'missing') });
    assert.deepEqual(missing, ['REDIS_URL_FILE cannot be read (ENOENT).']);
  });

  test('alerts are posted with a signature, under a secret that cannot be guessed', () => {
    const url = { ALERT_WEBHOOK_URL: 'https://hooks.example/x' };
    assert.match(problemsOf({ ...usable, ...url }).join(), /^ALERT_WEBHOOK_SECRET is missing/);
    const short = { ...url, ALERT_WEBHOOK_SECRET: 'x' };
    assert.match(problemsOf({ ...usable, ...short }).join(), /must have at least 32 characters/);
  });

  test('plain http that crosses a network is named, unless the service speaks TLS', () => {
    const { cert, key } = selfSigned('pay.example');
    const hosts = { HOST: '0.0.0.0', METRICS_HOST: '10.0.0.7', CONSOLE_HOST: '127.0.0.1' };
    const named = (env: NodeJS.ProcessEnv) => listPlaintextHosts(readConfig({ ...usable, ...env }));
    assert.deepEqual(named({}), []);
    assert.deepEqual(named(hosts), ['HOST', 'METRICS_HOST']);
    assert.deepEqual(named({ ...hosts, TLS_CERTIFICATE: cert, TLS_KEY: key }), []);
  });

  test('secure and local addresses are accepted', () => {
    for (const env of [
      { DATABASE_URL: 'postgres://db.example/tranche?sslmode=verify-full' },
      { DATABASE_URL: 'postgres://localhost/tranche' },
      { DATABASE_URL: 'postgres:///tranche?host=/var/run/postgresql' },
      { REDIS_URL: 'rediss://cache.example' },
      { REDIS_URL: 'redis://127.0.0.1' },
      { METRICS_HOST: '10.0.0.7' },
      { HOST: '0.0.0.0' },
      { ALERT_WEBHOOK_URL: 'http://127.0.0.1:9000/alerts', ALERT_WEBHOOK_SECRET: 'x'.repeat(32) },
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' },
      { TRUST_PROXY: '2' },
      { TRUST_PROXY: '10.0.0.0/8,104.16.0.0/13,2400:cb00::/32' },
      { MAIL_URL: 'smtps://mail.example?tls.servername=mx.example', MAIL_FROM: 'pay@shop.example' },
      { MAIL_URL: 'smtp://localhost?ignoreTLS=true', MAIL_FROM: 'pay@shop.example' },
    ]) {
      assert.deepEqual(problemsOf({ ...usable, ...env }), [], JSON.stringify(env));
    }
  });

  test('mail over smtp:// requires TLS, unless the server is local or mail-plaintext is accepted', () => {
    const requiresTls = (MAIL_URL: string, more: NodeJS.ProcessEnv = {}) =>
      readConfig({ ...usable, MAIL_URL, MAIL_FROM: 'pay@shop.example', ...more }).mail?.requiresTls;
    assert.equal(requiresTls('smtp://mail.example:587'), true);
    assert.equal(requiresTls('smtp://10.0.0.7'), true);
    assert.equal(requiresTls('smtp://127.0.0.1?host=10.0.0.7'), true);
    assert.equal(requiresTls('smtp://127.0.0.1:25'), false);
    const accepted = { ACCEPT_INSECURE: 'mail-plaintext' };
    assert.equal(requiresTls('smtp://mail.example:587', accepted), false);
    const sandbox = { TRANCHE_ENV: 'sandbox', STRIPE_SECRET_KEY: '' };
    assert.equal(requiresTls('smtp://mail.example:587', sandbox), false);
  });

  test('all problems are listed at once', () => {
    const problems = problemsOf({
      TRANCHE_ENV: 'production',
      BASE_URL: 'http://pay.example',
      CALLBACK_ALLOW: '127.0.0.0/8',
      STRIPE_SECRET_KEY: 'sk_test_0123456789',
      STRIPE_PUBLISHABLE_KEY: 'pk_test_0123456789',
    });
    assert.ok(
      problems.some((problem) => /gateway/.test(problem)),
      'the test gateway is not named',
    );
    for (const name of ['BASE_URL', 'MASTER_KEY', 'CALLBACK_ALLOW']) {
      assert.ok(
        problems.some((problem) => problem.startsWith(name)),
        `${name} is not named`,
      );
    }
  });
});
