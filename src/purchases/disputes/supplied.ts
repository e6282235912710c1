import type { EvidenceFileKind } from '#gateway/evidence.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type FileTypeName, fileEndings, readFileType } from '#platform/shared/file-type.ts';
import { explainInvisible, isPlainLine, printable } from '#platform/shared/plain-text.ts';
import { evidenceFileBytesMax } from '#platform/shared/uploads.ts';

/** Facts about an order that the merchant knows and we do not. Days are local dates. */
export type Supplied = {
  carrier?: string;
  tracking_number?: string;
  shipped_on?: string;
  delivered_on?: string;
  /** The merchant's own words. */
  statement?: string;
};
export const suppliedNames = [
  'carrier',
  'tracking_number',
  'shipped_on',
  'delivered_on',
  'statement',
] as const satisfies (keyof Supplied)[];
type SuppliedName = (typeof suppliedNames)[number];

export const lineMax = 100;
export const statementMax = 4_000;

/** Reasons that concern the charge itself, not the delivery of goods. */
const withoutDelivery = ['duplicate', 'credit_not_processed', 'subscription_canceled'];

/** The facts that a bank asks for, by the reason for the dispute. */
export const wantedFacts = (reason: string): readonly SuppliedName[] =>
  withoutDelivery.includes(reason) ? ['statement'] : suppliedNames;

/** Returns what is wrong with supplied facts, or null. */
export function explainBadSupplied(supplied: Supplied): string | null {
  for (const name of suppliedNames) {
    const text = supplied[name];
    if (text === undefined) continue;
    const label = name.replaceAll('_', ' ');
    if (name === 'shipped_on' || name === 'delivered_on') {
      if (!isDay(text)) return `The field "${label}" must be a day, such as 2026-12-15.`;
      continue;
    }
    const max = name === 'statement' ? statementMax : lineMax;
    if (text.trim() === '' || text.length > max) {
      return `The ${label} must have 1 to ${max} characters.`;
    }
    if (name !== 'statement' && !isPlainLine(text)) return explainInvisible(`The ${label}`);
    if (printable(text) !== text) {
      return `The ${label} has an invisible character. Type it instead of pasting it.`;
    }
  }
  const { shipped_on, delivered_on } = supplied;
  if (shipped_on !== undefined && delivered_on !== undefined && delivered_on < shipped_on) {
    return 'The order cannot be delivered before it is shipped.';
  }
  return null;
}

function isDay(text: string): boolean {
  try {
    return Temporal.PlainDate.from(text).toString() === text && /^2[01]/.test(text);
  } catch {
    return false;
  }
}

/** A file without its content. */
export type DisputeFile = {
  id: string;
  kind: EvidenceFileKind;
  name: string;
  media_type: FileTypeName;
  sha256: string;
  size: number;
  added_at: Timestamp;
  removed_at: Timestamp | null;
  file_ref: string | null;
};

/** The bank gets all files as one document, whose size gateways limit (decision 0082). */
export const filesBytesMax = 4_500_000;
export const fileNameMax = 100;

/** Checks a file by its content, and its name by its type. Returns the type, or what is wrong. */
export function checkFile(
  name: string,
  content: Buffer,
): { media_type: FileTypeName } | { problem: string } {
  if (name.trim() === '' || name.length > fileNameMax || !isPlainLine(name)) {
    return { problem: `The name of a file must have 1 to ${fileNameMax} characters on one line.` };
  }
  if (content.length > evidenceFileBytesMax) {
    return {
      problem: `The file is larger than ${megabytes(evidenceFileBytesMax)}. Make it smaller.`,
    };
  }
  const media_type = readFileType(content);
  if (media_type === null) {
    return { problem: 'The file must be a complete PDF, PNG or JPEG. This one is not.' };
  }
  const endings = fileEndings[media_type];
  if (!endings.some((ending) => name.toLowerCase().endsWith(ending))) {
    return {
      problem: `The name of this file must end in ${endings[0]}, because its content is of that type.`,
    };
  }
  return { media_type };
}

export const megabytes = (bytes: number) => `${bytes / 1_000_000} MB`;
