import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { readJson } from '#platform/http/json.ts';
import { anyCharacter } from '../../../test/support/any-character.ts';
import { explainMismatch, sign, verifySignature } from './signature.ts';

const runs = (count: number) => ({
  numRuns: process.env.TRANCHE_TEST_LONG ? count : Math.ceil(count / 10),
});

const secretPart = 'Zk3-x_9Qw7LrT0bVn5sYcE2mHdJ8uGaPiKfOoBtRzXM';
const signingKey = `sig_sandbox_${secretPart}`;
const otherKey = 'sig_sandbox_qN4vA7yB1eC6tD9wF2hG5jK8lM0nP3rS-uVxWzZbQcT';
const clientSecret = 'cs_sandbox_T8rW2qL5nX7vB0mZ3cK6jH9gF1dS4aPoIuYtReWqAsD';

const order = {
  checkout: {
    amount: 150000,
    currency: 'ZAR',
    notify_url: 'https://shop.example/notify',
    customer: { email: 'zoë@shop.example', first_name: 'Zoë 😀' },
    line_items: [{ name: 'A "B"', amount: 1, quantity: 2 }, {}, []],
  },
};
const compact = JSON.stringify(order);
const pretty = (indent: number | string) => JSON.stringify(order, null, indent);
const oneLine = compact.replace(/"(?:[^"\\]|\\.)*"|[,:]/g, (token) =>
  token.length === 1 ? `${token} ` : token,
);
const ascii = (text: string) =>
  text.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const hmac = (
  encoding: 'base64' | 'base64url' | 'hex',
  text: string | Buffer = compact,
  key: string | Buffer = signingKey,
  algorithm = 'sha512',
) => createHmac(algorithm, key).update(text).digest(encoding);

function explain(
  header: string | string[] | undefined,
  sent = compact,
  signingKeys = [signingKey],
) {
  const rawBody = Buffer.from(sent);
  const compactBody = readJson(rawBody).compact;
  assert.equal(verifySignature(header, compactBody, signingKeys), null, 'the signature verified');
  return explainMismatch({ header, rawBody, compactBody, signingKeys, clientSecret });
}

test('a signature is the standard Base64 of an HMAC-SHA512 under the whole key as printed', () => {
  // Computed with: printf '{"a":1}' | openssl dgst -sha512 -hmac sig_sandbox_key -binary | base64
  // -w0
  const known =
    '9qb8oOjtlehtxysCi0Ajz/E5izDmNybJQB/npBvGyjbnSCXtmDsbsXTUjdrsYv6WTaE0JvAs/GIOWszBRizzeA==';
  assert.equal(sign('sig_sandbox_key', Buffer.from('{"a":1}')), known);
  assert.match(sign(signingKey, Buffer.from(compact)), /^[A-Za-z0-9+/]{86}==$/);
});

test('a signature verifies under either key, and the result names the key', () => {
  const body = Buffer.from(compact);
  const table: [keys: string[], key: string, index: number | null][] = [
    [[signingKey], signingKey, 0],
    [[otherKey, signingKey], signingKey, 1],
    [[otherKey, signingKey], otherKey, 0],
    [[signingKey, signingKey], signingKey, 0],
    [[otherKey], signingKey, null],
    [[], signingKey, null],
    [[signingKey], clientSecret, null],
  ];
  for (const [keys, key, index] of table) {
    assert.equal(verifySignature(sign(key, body), body, keys), index);
    assert.equal(verifySignature([sign(key, body)], body, keys), index);
  }
});

test('nothing but the exact value verifies', () => {
  const body = Buffer.from(compact);
  const right = sign(signingKey, body);
  const wrong: (string | string[] | undefined)[] = [
    undefined,
    [],
    '',
    'x',
    right.slice(0, -1),
    ` ${right}`,
    `${right}\n`,
    `"${right}"`,
    `${right}, ${right}`,
    [right, right],
    right.toLowerCase(),
    // Decodes to the same bytes: only the unused bits of the last character differ.
    right.replace(/.==$/, (end) => `${String.fromCharCode(end.charCodeAt(0) + 1)}==`),
    // Characters whose low bytes are the correct ones.
    [...right].map((letter) => String.fromCharCode(letter.charCodeAt(0) + 256)).join(''),
    'A'.repeat(1_000_000),
    '\u0000'.repeat(88),
    '😀'.repeat(44),
  ];
  for (const header of wrong) assert.equal(verifySignature(header, body, [signingKey]), null);
});

const hex = 'The value is hex: encode the bytes of the digest as standard Base64 instead.';
const urlSafe =
  'The value is URL-safe Base64: use the standard alphabet, with + and /, padded with =.';
const padding = 'The value has no padding: standard Base64 is padded with =.';
const hexInside =
  'The value is Base64 of a hex digest: encode the bytes of the digest, not its hex text.';
const bare = 'Send the bare signature, without quotes, label or white space.';
const secret = 'The signature was made with the client secret: sign with the signing key.';
const lineBreak =
  'The signed text ends in a line break, which is not part of the body: sign the body alone (echo adds a line break; printf does not).';
const prettyPrint =
  'The signed text is pretty-printed: serialise the body compactly, sign that string and send the same string.';
const spaces =
  'The signed text has spaces between its tokens: serialise the body compactly (in Python with separators=(",", ":")), sign that string and send the same string.';
const otherText =
  'The signed text is another serialisation of this body, with other escapes, number formats or member order: serialise once, sign that string and send the same string.';
const nothing = 'The signed text is empty: sign the body that you send.';
const emptyKey =
  'The signature was made with an empty key: check that your program loads the signing key.';
const unprefixed =
  'The signature was made with the signing key without its prefix: use the whole key as it was printed.';
const keyLineBreak =
  'The signature was made with the signing key and a line break after it: remove the line break.';
const keyQuotes = 'The signature was made with the signing key in quotes: remove the quotes.';
const decoded = 'The signing key was decoded before use: use its text as it was printed.';
const noKey = 'The value is a plain digest, without a key: use HMAC-SHA512 with the signing key.';
const several =
  'The header has several values, or one that was split at a comma: send X-Signature once, with one value.';
const shorter = (algorithm: string) =>
  `The value has the length of a ${algorithm} digest: use HMAC-SHA512.`;
const wrongLength = (length: number) =>
  `The value has ${length} characters. A correct signature is standard Base64: 88 characters, the last of them =.`;

const right = hmac('base64');
const explained: [
  mistake: string,
  header: string | string[] | undefined,
  explanation: string | null,
  sent?: string,
][] = [
  ['hex', hmac('hex'), hex],
  ['hex in capitals', hmac('hex').toUpperCase(), hex],
  ['hex of something unknown', 'ab'.repeat(64), hex],
  ['URL-safe Base64', `${hmac('base64url')}==`, urlSafe],
  ['URL-safe Base64 without padding', hmac('base64url'), urlSafe],
  ['no padding', right.replaceAll('=', ''), padding],
  ['the Base64 of hex', Buffer.from(hmac('hex')).toString('base64'), hexInside],
  ['quotes', `"${right}"`, bare],
  ['a label', `sha512=${right}`, bare],
  ['a label and a space', `HMAC-SHA512 ${right}`, bare],
  ['white space inside', `${right.slice(0, 64)} ${right.slice(64)}`, bare],
  ['a label before hex', `sha512=${hmac('hex')}`, `${bare} ${hex}`],

  ['the client secret', hmac('base64', compact, clientSecret), secret],
  ['the client secret, in hex', hmac('hex', compact, clientSecret), `${hex} ${secret}`],
  [
    'the client secret over pretty-printed text',
    hmac('base64', pretty(2), clientSecret),
    `${secret} ${prettyPrint}`,
  ],
  ['an empty key', hmac('base64', compact, ''), emptyKey],
  ['the key without its prefix', hmac('base64', compact, secretPart), unprefixed],
  ['the key with a line break', hmac('base64', compact, `${signingKey}\n`), keyLineBreak],
  ['the key in quotes', hmac('base64', compact, `"${signingKey}"`), keyQuotes],
  ['the key decoded', hmac('base64', compact, Buffer.from(secretPart, 'base64url')), decoded],
  ['no key', createHash('sha512').update(compact).digest('base64'), noKey],
  [
    'the key without its prefix over the text as sent',
    hmac('base64', pretty(2), secretPart),
    `${unprefixed} ${prettyPrint}`,
    pretty(2),
  ],

  ['the pretty-printed text as sent', hmac('base64', pretty(2)), prettyPrint, pretty(2)],
  ['the pretty-printed text, compact sent', hmac('base64', pretty(2)), prettyPrint],
  ['four spaces', hmac('base64', pretty(4)), prettyPrint],
  ['tabs', hmac('base64', pretty('\t')), prettyPrint],
  ['Windows line breaks', hmac('base64', pretty(2).replaceAll('\n', '\r\n')), prettyPrint],
  ['pretty-printed with a line break', hmac('base64', `${pretty(2)}\n`), prettyPrint],
  ['pretty-printed by PHP', hmac('base64', ascii(pretty(4)).replaceAll('/', '\\/')), prettyPrint],
  ['spaces as sent', hmac('base64', oneLine), spaces, oneLine],
  ['spaces, compact sent', hmac('base64', oneLine), spaces],
  ['Python spaces and escapes', hmac('base64', ascii(oneLine)), spaces],
  ['a line break', hmac('base64', `${compact}\n`), lineBreak],
  ['a Windows line break', hmac('base64', `${compact}\r\n`), lineBreak],
  ['a line break as sent', hmac('base64', `${compact}\n`), lineBreak, `${compact}\n`],
  ['escapes', hmac('base64', ascii(compact)), otherText],
  ['escaped slashes', hmac('base64', compact.replaceAll('/', '\\/')), otherText],
  ['no escapes, escapes sent', right, otherText, ascii(compact).replaceAll('/', '\\/')],
  ['members in another order', hmac('base64', '{"1":2,"2":1}'), otherText, '{"2":1,"1":2}'],
  ['numbers spelled differently', hmac('base64', '{"a":1}'), otherText, '{"a":1.0}'],
  ['nothing', hmac('base64', ''), nothing],

  ['SHA-256', hmac('base64', compact, signingKey, 'sha256'), shorter('SHA-256')],
  ['SHA-256 in hex', hmac('hex', compact, signingKey, 'sha256'), `${hex} ${shorter('SHA-256')}`],
  ['SHA-384', hmac('base64', compact, signingKey, 'sha384'), shorter('SHA-384')],
  ['SHA-1 in hex', hmac('hex', compact, signingKey, 'sha1'), `${hex} ${shorter('SHA-1')}`],
  [
    'SHA-256 with the client secret',
    hmac('base64', compact, clientSecret, 'sha256'),
    `${shorter('SHA-256')} ${secret}`,
  ],

  ['an absent header', undefined, null],
  ['no header in the list', [], null],
  ['two headers', [right, right], several],
  ['two headers joined', `${right}, ${right}`, several],
  ['an empty header', '', wrongLength(0)],
  ['a word', 'signature', wrongLength(9)],
  [
    'not ASCII',
    'é'.repeat(88),
    'The value has 88 characters, but "é" at character 1 is not Base64.',
  ],
  [
    'one wrong character in 88',
    `${'A'.repeat(40)}!${'A'.repeat(45)}==`,
    'The value has 88 characters, but "!" at character 41 is not Base64.',
  ],
  [
    'padding in the middle of 88',
    `${'A'.repeat(40)}=${'A'.repeat(45)}==`,
    'The value has 88 characters, but "=" at character 41 is not Base64.',
  ],
  [
    'no padding in 88',
    'A'.repeat(88),
    'The value has 88 characters, but its padding is wrong. A correct signature is standard Base64: 88 characters, the last of them =.',
  ],
  ['an absurdly long value', 'A'.repeat(1_000_000), wrongLength(1_000_000)],
  ['an unknown key', hmac('base64', compact, 'another'), null],
  ['another body', hmac('base64', '{"checkout":{}}'), null],
];

for (const [mistake, header, explanation, sent] of explained) {
  test(`a wrong signature is explained: ${mistake}`, () => {
    assert.equal(explain(header, sent), explanation);
  });
}

test('no more than four mebibytes are hashed to explain a mistake', () => {
  const half = 2 * 1024 * 1024;
  for (const [length, expected] of [
    [half, secret],
    [half + 1, null],
  ] as const) {
    // The second guess is the client secret.
    const body = Buffer.alloc(length, '1');
    const header = hmac('base64', body, clientSecret);
    const request = { header, rawBody: body, compactBody: body, signingKeys: [signingKey] };
    assert.equal(explainMismatch({ ...request, clientSecret }), expected);
  }
});

test('a mistake is explained under either key of a rotation', () => {
  for (const key of [signingKey, otherKey]) {
    assert.equal(explain(hmac('hex', compact, key), compact, [signingKey, otherKey]), hex);
    assert.equal(
      explain(hmac('base64', pretty(2), key), compact, [signingKey, otherKey]),
      prettyPrint,
    );
  }
});

test('a guess at a part of the signing key is never confirmed', () => {
  const keys = [
    'sig_sandbox_short',
    'sig_sandbox_ab_Zk3x9Qw7LrT0bVn5',
    `sig_sandbox_${'a1'.repeat(15)}.`,
  ];
  for (const key of keys) {
    const printed = key.replace('sig_sandbox_', '');
    for (const whole of [key, printed]) {
      for (let length = 1; length <= 15; length++) {
        const pieces = [
          whole.slice(0, length),
          whole.slice(-length),
          Buffer.from(whole, 'base64').subarray(0, length),
          Buffer.from(whole.slice(0, length * 2), 'hex'),
        ];
        for (const piece of pieces) {
          if (piece.length === 0) continue;
          assert.equal(explain(hmac('base64', compact, piece), compact, [key]), null);
        }
      }
    }
  }
});

test('an explanation shows neither a key nor the expected signature', () => {
  for (const [, header, explanation, sent] of explained) {
    if (explanation === null) continue;
    const text = explain(header, sent) ?? '';
    for (const hidden of [
      secretPart,
      clientSecret,
      right,
      sign(signingKey, Buffer.from(sent ?? '')),
    ]) {
      assert(!text.includes(hidden));
    }
  }
});

test('a large body is explained with bounded work', () => {
  const large = `{"a":[${'[],'.repeat(87_000)}1]}`;
  assert.equal(explain(hmac('base64', large, clientSecret), large), secret);
  assert.equal(explain(hmac('base64', `${large}\n`), large), lineBreak);
  assert.equal(explain(hmac('base64', large, 'another'), large), null);
  const deep = `${'{"a":'.repeat(30)}[${'[],'.repeat(10_000)}1]${'}'.repeat(30)}`;
  assert.equal(explain(hmac('base64', deep, 'another'), deep), null);
});

const jsonObject = fc
  .dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue({ stringUnit: anyCharacter }))
  .filter((value) => !/__proto__|constructor/.test(JSON.stringify(value)));

test('a signature over the compact text verifies however the body was spaced on the way', () => {
  fc.assert(
    fc.property(jsonObject, fc.constantFrom(0, 1, 2, 4, '\t', '\n\r '), (object, indent) => {
      const signature = sign(signingKey, Buffer.from(JSON.stringify(object)));
      const sent = Buffer.from(JSON.stringify(object, null, indent));
      assert.equal(verifySignature(signature, readJson(sent).compact, [otherKey, signingKey]), 1);
    }),
    runs(2000),
  );
});

test('a signature over pretty-printed text never verifies and is always explained', () => {
  fc.assert(
    fc.property(
      jsonObject.filter((object) => Object.keys(object).length > 0),
      fc.constantFrom(2, 4, '\t'),
      fc.boolean(),
      (object, indent, sentCompact) => {
        const text = JSON.stringify(object, null, indent);
        const sent = sentCompact ? JSON.stringify(object) : text;
        assert.equal(explain(hmac('base64', text), sent), prettyPrint);
      },
    ),
    runs(1000),
  );
});

test('a changed byte of the body or of the signature never verifies', () => {
  fc.assert(
    fc.property(jsonObject, fc.nat(), fc.integer({ min: 1, max: 255 }), (object, at, change) => {
      const body = Buffer.from(JSON.stringify(object));
      const signature = sign(signingKey, body);
      const changed = Buffer.from(body);
      changed[at % body.length] = (body[at % body.length] ?? 0) ^ change;
      assert.equal(verifySignature(signature, changed, [signingKey]), null);
      const digest = Buffer.from(signature, 'base64');
      digest[at % 64] = (digest[at % 64] ?? 0) ^ change;
      assert.equal(verifySignature(digest.toString('base64'), body, [signingKey]), null);
    }),
    runs(2000),
  );
});

test('no header, however strange, does more than fail to verify', () => {
  const strange = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 600 }),
    fc.base64String({ maxLength: 600 }),
    fc.stringMatching(/^[\w+/=:;,'" -]{0,180}$/),
    fc.array(fc.string(), { maxLength: 3 }),
  );
  fc.assert(
    fc.property(strange, (header) => {
      const explanation = explain(header);
      assert(explanation === null || explanation.endsWith('.'));
    }),
    runs(3000),
  );
});
