import { escapeHtml } from '#platform/shared/html.ts';
import { decimal } from '#platform/shared/money.ts';

// The payment order of ISO 20022: CustomerCreditTransferInitiation, pain.001.001.09. The schema
// prescribes the order of the elements. Optional elements that a bank agrees with its customer
// (batch booking, charges, purpose) are left out (decision 0081).

/** The account that the operator pays merchants from. */
export type PayingAccount = { holder: string; branch_code: string; account_number: string };

type Transfer = {
  id: string;
  reference: string;
  amount: number;
  currency: string;
  holder: string;
  bank: string;
  branch_code: string;
  account_number: string;
};

/** The transfers of one territory: they are executed on the same day. */
type Batch = { territory: string; executes_on: string; transfers: Transfer[] };

type Message = {
  /** The id of the export. The same export always gives the same message. */
  id: string;
  at: Temporal.Instant;
  from: PayingAccount;
  batches: Batch[];
};

export function writePain001({ id, at, from, batches }: Message): string {
  const all = batches.flatMap(({ transfers }) => transfers);
  const holder = element('Nm', bankText(from.holder, nameMax));
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.09">',
    '<CstmrCdtTrfInitn>',
    '<GrpHdr>',
    element('MsgId', compact(id)),
    element('CreDtTm', at.toString({ smallestUnit: 'second' })),
    sums(all),
    `<InitgPty>${holder}</InitgPty>`,
    '</GrpHdr>',
    ...batches.map((batch) => writeBatch(id, from, batch)),
    '</CstmrCdtTrfInitn>',
    '</Document>',
    '',
  ].join('\n');
}

function writeBatch(id: string, from: PayingAccount, batch: Batch): string {
  const { territory, executes_on, transfers } = batch;
  return [
    '<PmtInf>',
    element('PmtInfId', `${compact(id)}${territory}`),
    element('PmtMtd', 'TRF'),
    sums(transfers),
    // An ordinary transfer, not an urgent one.
    '<PmtTpInf><SvcLvl><Cd>NURG</Cd></SvcLvl></PmtTpInf>',
    `<ReqdExctnDt>${element('Dt', executes_on)}</ReqdExctnDt>`,
    `<Dbtr>${element('Nm', bankText(from.holder, nameMax))}</Dbtr>`,
    `<DbtrAcct>${account(from.account_number)}</DbtrAcct>`,
    `<DbtrAgt>${agent(from.branch_code, territory)}</DbtrAgt>`,
    ...transfers.map((transfer) => writeTransfer(transfer, territory)),
    '</PmtInf>',
  ].join('\n');
}

/**
 * The payout's id is unique in every file. The reference is not, because each merchant's payouts
 * have their own numbers. The merchant reads the reference on its bank statement.
 */
function writeTransfer(transfer: Transfer, territory: string): string {
  const { id, reference, amount, currency, holder, bank, branch_code, account_number } = transfer;
  return [
    '<CdtTrfTxInf>',
    `<PmtId>${element('InstrId', compact(id))}${element('EndToEndId', compact(id))}</PmtId>`,
    `<Amt><InstdAmt Ccy="${currency}">${decimal(amount)}</InstdAmt></Amt>`,
    `<CdtrAgt>${agent(branch_code, territory, bank)}</CdtrAgt>`,
    `<Cdtr>${element('Nm', bankText(holder, nameMax))}</Cdtr>`,
    `<CdtrAcct>${account(account_number)}</CdtrAcct>`,
    `<RmtInf>${element('Ustrd', bankText(reference, nameMax))}</RmtInf>`,
    '</CdtTrfTxInf>',
  ].join('\n');
}

const element = (name: string, text: string) => `<${name}>${escapeHtml(text)}</${name}>`;

/** A UUID without its hyphens, because an id may have at most 35 characters. */
const compact = (uuid: string) => uuid.replaceAll('-', '');

function sums(transfers: Transfer[]): string {
  const sum = transfers.reduce((total, { amount }) => total + amount, 0);
  return element('NbOfTxs', String(transfers.length)) + element('CtrlSum', decimal(sum));
}

const account = (number: string) => `<Id><Othr>${element('Id', number)}</Othr></Id>`;

/** Codes of national clearing systems, from the external code sets of ISO 20022. */
const clearingSystems: Record<string, string> = { ZA: 'ZANCC' };

function agent(branch_code: string, territory: string, name?: string): string {
  const system = clearingSystems[territory];
  const known = system ? `<ClrSysId>${element('Cd', system)}</ClrSysId>` : '';
  const named = name === undefined ? '' : element('Nm', bankText(name, nameMax));
  return `<FinInstnId><ClrSysMmbId>${known}${element('MmbId', branch_code)}</ClrSysMmbId>${named}</FinInstnId>`;
}

const nameMax = 140;

/** Replacements of characters that banks refuse. */
const replacements: Record<string, string> = {
  '&': '+',
  '"': "'",
  '‘': "'",
  '’': "'",
  '“': "'",
  '”': "'",
  '`': "'",
  '–': '-',
  '—': '-',
  _: '-',
  ';': ',',
  '[': '(',
  ']': ')',
  '{': '(',
  '}': ')',
  '\\': '/',
  '@': '(at)',
  ß: 'ss',
  æ: 'ae',
  Æ: 'AE',
  œ: 'oe',
  Œ: 'OE',
  ø: 'o',
  Ø: 'O',
  đ: 'd',
  Đ: 'D',
  ł: 'l',
  Ł: 'L',
  þ: 'th',
  Þ: 'Th',
};

/**
 * Text in the characters that every bank accepts, SWIFT's set X. Accents are dropped, and a
 * character without an equivalent becomes a full stop. No slash may be at either end or next to
 * another.
 */
export function bankText(text: string, max: number): string {
  const plain = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[\s\p{C}]+/gu, ' ')
    .replace(/[^A-Za-z0-9/?:().,'+ -]/gu, (character) => replacements[character] ?? '.')
    .replace(/\/{2,}/g, '/')
    .replace(/^[/ ]+/, '')
    .slice(0, max)
    .replace(/[/ ]+$/, '');
  // The schema requires a name, even if none of its characters can be written.
  return /[A-Za-z0-9]/.test(plain) ? plain : 'NOTPROVIDED';
}
