import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bankText, writePain001 } from './pain-001.ts';

type Node = { name: string; currency: string | null; children: Node[]; text: string };

/**
 * Reads XML without comments or CDATA, with at most one attribute per element. Throws for an
 * element that is not closed.
 */
function parse(xml: string): Node {
  const root: Node = { name: '', currency: null, children: [], text: '' };
  const open = [root];
  const body = xml.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, '');
  for (const [, close, name, attribute, value, text] of body.matchAll(
    /<(\/?)([A-Za-z0-9]+)(?: (Ccy|xmlns)="([^"]*)")?>|([^<]+)/g,
  )) {
    const top = open.at(-1) as Node;
    if (text !== undefined) {
      if (text.trim() !== '') top.text += decode(text);
    } else if (close) {
      assert.equal(top.name, name);
      open.pop();
    } else {
      const currency = attribute === 'Ccy' ? (value as string) : null;
      const node = { name: name as string, currency, children: [], text: '' };
      top.children.push(node);
      open.push(node);
    }
  }
  assert.equal(open.length, 1, 'every element is closed');
  return root.children[0] as Node;
}

const decode = (text: string) =>
  text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => {
    return { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }[name] as string;
  });

/** Text in SWIFT's set X up to a length, without a slash at either end or two in a row. */
const setX = (max: number) =>
  new RegExp(`^(?!/)(?!.*//)(?!.*/$)[A-Za-z0-9/?:().,'+ -]{1,${max}}$`, 'u');
const code = /^[A-Z]{1,5}$/;
const date = /^\d{4}-\d\d-\d\d$/;
const amount = /^\d{1,16}\.\d\d$/;

type Rule = RegExp | [child: string, rule: Rule, many?: 'many' | 'optional'][];
const agent: Rule = [
  [
    'FinInstnId',
    [
      [
        'ClrSysMmbId',
        [
          ['ClrSysId', [['Cd', code]], 'optional'],
          ['MmbId', setX(35)],
        ],
      ],
      ['Nm', setX(140), 'optional'],
    ],
  ],
];
const account: Rule = [['Id', [['Othr', [['Id', setX(34)]]]]]];
const party: Rule = [['Nm', setX(140)]];
const transfer: Rule = [
  [
    'PmtId',
    [
      ['InstrId', setX(35)],
      ['EndToEndId', setX(35)],
    ],
  ],
  ['Amt', [['InstdAmt', amount]]],
  ['CdtrAgt', agent],
  ['Cdtr', party],
  ['CdtrAcct', account],
  ['RmtInf', [['Ustrd', setX(140)]]],
];
/**
 * The elements of the published schema pain.001.001.09 that our messages have, in the order of its
 * sequences, with its lengths and patterns. Elements that the schema requires are required here.
 */
const message: Rule = [
  [
    'CstmrCdtTrfInitn',
    [
      [
        'GrpHdr',
        [
          ['MsgId', setX(35)],
          ['CreDtTm', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$/],
          ['NbOfTxs', /^[0-9]{1,15}$/],
          ['CtrlSum', amount],
          ['InitgPty', party],
        ],
      ],
      [
        'PmtInf',
        [
          ['PmtInfId', setX(35)],
          ['PmtMtd', /^TRF$/],
          ['NbOfTxs', /^[0-9]{1,15}$/],
          ['CtrlSum', amount],
          ['PmtTpInf', [['SvcLvl', [['Cd', /^[A-Z]{4}$/]]]]],
          ['ReqdExctnDt', [['Dt', date]]],
          ['Dbtr', party],
          ['DbtrAcct', account],
          ['DbtrAgt', agent],
          ['CdtTrfTxInf', transfer, 'many'],
        ],
        'many',
      ],
    ],
  ],
];

function check(node: Node, rule: Rule, path = node.name): void {
  if (rule instanceof RegExp) {
    assert.match(node.text, rule, path);
    assert.equal(node.children.length, 0, path);
    if (node.name === 'InstdAmt') assert.match(node.currency ?? '', /^[A-Z]{3}$/, path);
    return;
  }
  let next = 0;
  for (const [name, childRule, times] of rule) {
    const begins = next;
    while (node.children[next]?.name === name) {
      check(node.children[next] as Node, childRule, `${path}/${name}`);
      next += 1;
    }
    const count = next - begins;
    const isRight = times === 'many' ? count > 0 : count === 1 || (times === 'optional' && !count);
    assert.ok(isRight, `${path} has ${count} ${name}`);
  }
  assert.equal(next, node.children.length, `${path} has an element out of its place`);
}

const all = (node: Node, name: string): Node[] => [
  ...(node.name === name ? [node] : []),
  ...node.children.flatMap((child) => all(child, name)),
];
const texts = (node: Node, name: string) => all(node, name).map(({ text }) => text);

const cents = (text: string) => Number(text.replace('.', ''));

const transferOf = (number: number, change: object = {}) => ({
  id: `0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d1${number}`,
  reference: `TR20261116-${number}`,
  amount: 786_110,
  currency: 'ZAR',
  holder: 'Karoo & Sons',
  bank: 'Standard Bank',
  branch_code: '051001',
  account_number: '01234567890',
  ...change,
});

const write = (batches: Parameters<typeof writePain001>[0]['batches']) =>
  writePain001({
    id: '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d99',
    at: Temporal.Instant.from('2026-11-16T08:00:00.123Z'),
    from: { holder: 'Tranche (Pty) Ltd', branch_code: '250655', account_number: '62000000001' },
    batches,
  });

test('a message for the bank follows pain.001.001.09, and its sums and counts are right', () => {
  const xml = write([
    {
      territory: 'ZA',
      executes_on: '2026-11-16',
      transfers: [
        transferOf(1, { amount: 5, holder: 'Ünïcode “Łódź” <b>&amp;</b>\n//x/' }),
        transferOf(2, { amount: 9_007_199_254, holder: '株式会社', bank: '/First_Rand; #1/' }),
      ],
    },
    {
      territory: 'NA',
      executes_on: '2026-11-17',
      transfers: [transferOf(3, { holder: 'ß'.repeat(100), branch_code: '483-772' })],
    },
  ]);
  assert.match(xml, /<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain\.001\.001\.09">/);
  const document = parse(xml);
  check(document, message);
  assert.deepEqual(texts(document, 'NbOfTxs'), ['3', '2', '1']);
  const sums = texts(document, 'CtrlSum').map(cents);
  const amounts = texts(document, 'InstdAmt').map(cents);
  const [first = 0, second = 0, third = 0] = amounts;
  assert.deepEqual(amounts, [5, 9_007_199_254, 786_110]);
  assert.deepEqual(sums, [first + second + third, first + second, third]);
  assert.deepEqual(texts(document, 'InstdAmt'), ['0.05', '90071992.54', '7861.10']);
  assert.deepEqual(texts(document, 'Ustrd'), ['TR20261116-1', 'TR20261116-2', 'TR20261116-3']);
  assert.equal(new Set(texts(document, 'EndToEndId')).size, 3, 'each transfer has its own id');
  assert.equal(new Set(texts(document, 'PmtInfId')).size, 2);
  // In South Africa a branch code belongs to the national clearing system.
  assert.deepEqual(
    all(document, 'ClrSysMmbId').map((one) => texts(one, 'Cd')[0] ?? null),
    ['ZANCC', 'ZANCC', 'ZANCC', null, null],
  );
});

test('text has only characters that every bank accepts, and is never empty', () => {
  for (const [text, wanted] of [
    ['Karoo & Sons', 'Karoo + Sons'],
    ['Café «Zoë»', 'Cafe .Zoe.'],
    ['Müller’s', "Muller's"],
    ['a//b', 'a/b'],
    ['/a/', 'a'],
    ['two\r\nlines', 'two lines'],
    ['pay_me@home', 'pay-me(at)home'],
    ['株式会社', 'NOTPROVIDED'],
    ['', 'NOTPROVIDED'],
    ['Æsop', 'AEsop'],
    ['½ price', '1.2 price'],
    ['x'.repeat(12), 'xxxxxxxxxx'],
  ] as const) {
    assert.equal(bankText(text, 10 + (text.startsWith('x') ? 0 : 100)), wanted);
    assert.match(bankText(text, 140), setX(140));
  }
});
