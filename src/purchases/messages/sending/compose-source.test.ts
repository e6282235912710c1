import assert from 'node:assert/strict';
import { test } from 'node:test';
import { composeSource, headerText, quotedPrintable } from './compose-source.ts';

const texts = [
  '',
  'Dankie, Thandi. Jy het R 1 500,00 betaal.',
  'Ngiyabonga – 100 % = all of it ✓ 💳',
  'a space at the end \nand a tab\t\r\n.\n..dots\n\n',
  `${'long '.repeat(60)}${'é'.repeat(90)}${'='.repeat(90)}`,
  ...Array.from({ length: 8 }, (_, more) => `${'x'.repeat(70 + more)}é tail`),
  '=_boundary --=_boundary',
];

function decode(encoded: string): string {
  const bytes = encoded
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

test('quoted-printable text decodes to the text, in short plain lines', () => {
  for (const text of texts) {
    const encoded = quotedPrintable(text);
    assert.equal(decode(encoded), text.replaceAll(/\r\n|\n/g, '\r\n'));
    for (const line of encoded.split('\r\n'))
      assert.match(line, /^([\x21-\x7e\t ]{0,75}[\x21-\x7e])?$/);
    assert.ok(!encoded.includes('=_'));
  }
});

test('the headers of a mail are lines that a server accepts', () => {
  const domain = `${'pay.'.repeat(20)}example`;
  for (const name of ['Karoo, Pay', 'Karoo Betaal ê', 'ü'.repeat(90), 'K'.repeat(70)]) {
    const sender = `pay@${domain}`;
    const source =
      compose({ subject: 'é'.repeat(100) }, `${name} <${sender}>`, `<m-${sender}>`) ?? '';
    const lines = source.split('\r\n\r\n')[0]?.split('\r\n') ?? [];
    for (const line of lines) assert.ok(line.length <= 76 || !line.includes('=?'), line);
    assert.match(source, /boundary="[\w=-]{1,70}"/);
  }
  assert.match(compose({}, 'Karoo,\tPay <pay@example.com>') ?? '', /^From: "Karoo, Pay" </);
});

test('a text in a header decodes to the text, and cannot begin another header', () => {
  for (const text of [...texts.slice(1, 3), 'Plain', '=?UTF-8?B?eA==?=', 'ü'.repeat(200)]) {
    const words = headerText(text).split('\r\n ');
    for (const word of words) assert.match(word, /^[\x20-\x7e]{1,75}$/);
    const decoded = words.map((word) => {
      const base64 = /^=\?UTF-8\?B\?(.*)\?=$/.exec(word)?.[1];
      return base64 === undefined ? word : Buffer.from(base64, 'base64').toString();
    });
    assert.equal(decoded.join(''), text);
  }
  assert.equal(headerText('Shop\r\nBcc: all@example.com'), 'Shop Bcc: all@example.com');
});

const mail = {
  ...{ merchant_id: null, checkout_id: null, message_id: 'm', sent_at: '' },
  ...{ to: 'thandi@example.com', subject: 'Paid', text: 'Text', html: '<p>Text</p>' },
};
const compose = (
  changed: object,
  from = 'Karoo "K" Pay <pay@example.com>',
  messageId = '<m-1@example.com>',
) =>
  composeSource(
    { ...mail, ...changed },
    { from, messageId, date: Temporal.Instant.from('2026-11-17T22:00:00Z') },
  );

test('a mail has its headers and both parts', () => {
  const boundary = '=_m';
  assert.deepEqual(compose({})?.split('\r\n'), [
    'From: "Karoo \\"K\\" Pay" <pay@example.com>',
    'To: thandi@example.com',
    'Subject: Paid',
    'Message-ID: <m-1@example.com>',
    'Date: Tue, 17 Nov 2026 22:00:00 +0000',
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    `Content-Type: multipart/alternative; boundary="${boundary}"`,
    '',
    ...[`--${boundary}`, 'Content-Type: text/plain; charset=utf-8'],
    ...['Content-Transfer-Encoding: quoted-printable', '', 'Text'],
    ...[`--${boundary}`, 'Content-Type: text/html; charset=utf-8'],
    ...['Content-Transfer-Encoding: quoted-printable', '', '<p>Text</p>'],
    ...[`--${boundary}--`, ''],
  ]);
  assert.match(compose({}, 'pay@example.com') ?? '', /^From: pay@example\.com\r\n/);
});

test('the library composes mails with attachments and to unusual addresses', () => {
  for (const to of [
    '"a b"@example.com',
    'thandi@exämple.com',
    'a@b.com, c@d.com',
    'a@b.com\r\nBcc: c@d.com',
  ]) {
    assert.equal(compose({ to }), null);
  }
  assert.equal(compose({ attachments: [] }), null);
});
