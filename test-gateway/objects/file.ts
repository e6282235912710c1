import { createHash } from 'node:crypto';
import type { Kept } from '../store.ts';
import { daySeconds, type Made, newId } from './made.ts';

/** Stripe accepts no larger file as evidence, and keeps such a file for nine months. */
const bytesMax = 5_000_000;
const lifeDays = 270;

const beginnings: [type: string, beginning: Buffer][] = [
  ['pdf', Buffer.from('%PDF-')],
  ['png', Buffer.from([0x89, 0x50, 0x4e, 0x47])],
  ['jpg', Buffer.from([0xff, 0xd8, 0xff])],
];

const typeOf = (content: Buffer) =>
  beginnings.find(([, beginning]) =>
    content.subarray(0, beginning.length).equals(beginning),
  )?.[0] ?? null;

/** Returns why the gateway does not accept a file, or null. */
export function explainBadFile(content: Buffer): string | null {
  if (typeOf(content) === null) return 'File for dispute_evidence must be a PDF, JPG or PNG.';
  return content.length > bytesMax ? 'File for dispute_evidence cannot exceed 5 MB.' : null;
}

export function makeFile({ merchant, now }: Made, filename: string, content: Buffer): Kept<'file'> {
  const id = newId('file');
  return {
    object: {
      id,
      object: 'file',
      created: now,
      expires_at: now + lifeDays * daySeconds,
      filename,
      links: { object: 'list', data: [], has_more: false, url: `/v1/file_links?file=${id}` },
      purpose: 'dispute_evidence',
      size: content.length,
      title: null,
      type: typeOf(content),
      url: `https://files.stripe.com/v1/files/${id}/contents`,
    },
    hidden: { sha256: createHash('sha256').update(content).digest('hex') },
    merchant,
  };
}
