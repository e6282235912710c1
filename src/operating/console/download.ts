import { finished, Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { newLease } from '#platform/database/due-work.sql.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import { csvStart } from '#platform/shared/csv.ts';
import { FreeText } from '#record/actions/free-text.ts';
import { operate } from '#record/actions/operate.ts';
import {
  claimDownload,
  type DownloadLease,
  releaseDownload,
  updateDownload,
} from './download.sql.ts';
import { ConsoleError } from './errors.ts';
import type { Context } from './route.ts';
import { sharesOf } from './shares.ts';

export type Download = {
  name: string;
  /** The audit records this text instead of the name, if it is present. */
  auditedAs?: string;
  /** The file's media type, if its name does not show it. */
  type?: string;
  /** The row that the file is about; null for a list. */
  subject_id: string | null;
  /** The merchant that the file is about; null if a list has rows of several merchants. */
  merchant_id: string | null;
  filters: object;
  /**
   * The content security policy, if the browser opens the file as a page. Any other file is saved
   * and never shown.
   */
  policy?: string;
};

/** A part of a text, or of a file that is not text. */
type Piece = string | Buffer;
type Pieces = AsyncIterable<Piece> | Iterable<Piece>;

/** The claim on a download ends this long after a crash, or after its reader stops reading. */
const leaseSeconds = 120;
/**
 * A download can take hours, and its reader may lose access meanwhile. So the claim is extended
 * this often, and only for a reader who still has access.
 */
const checkSeconds = 1;

const failed = 'the lease of a download could not be released';

/**
 * Answers with a file that is read and written page by page, so that other requests wait for one
 * page at most. A person can download one file at a time. The audit records the file and its
 * filters before the first line is sent, and the number of lines at the end.
 */
export async function answerDownload(
  context: Context,
  download: Download,
  open: () => Promise<Pieces>,
): Promise<FastifyReply> {
  const { now, ...lease } = newLease(context.deps, leaseSeconds);
  const { name, auditedAs: file = name, subject_id, merchant_id, filters } = download;
  const release = () => releaseDownload(context.deps.database.db, lease.lease);
  const details = { file, filters: typedFilters(filters) };
  const shares = sharesOf(context, merchant_id, details);
  await operate(context.deps, context.operator, 'files read', async (db) => {
    if (!(await claimDownload(db, context.person.id, lease, now))) {
      const text = 'You are already downloading a file. Try again when that has finished.';
      throw new ConsoleError(429, 'downloading', text);
    }
    return { subject_id, merchant_id, details, shares, result: null };
  });
  try {
    const stream = Readable.from(sent(context, download, lease, await open()));
    // If the stream ends before it was read, `sent` has not run and cannot release the lease.
    finished(stream, () => void release().catch((err) => context.deps.log.warn({ err }, failed)));
    return answerFile(context, download, stream);
  } catch (error) {
    await release();
    throw error;
  }
}

async function* sent(
  context: Context,
  { name, auditedAs: file = name, type, subject_id, merchant_id }: Download,
  { lease, ...first }: DownloadLease,
  pieces: Pieces,
): AsyncGenerator<Piece> {
  const { deps, operator, person, session, scope } = context;
  const merchant_ids = scope === 'all merchants' ? null : scope.merchant_ids;
  const { id: person_id, roles } = person;
  const reader = { session_id: session.id, person_id, roles, merchant_ids };
  let lines = 0;
  let is_whole = false;
  let { leased_until } = first;
  try {
    if (type === undefined && name.endsWith('.csv')) yield csvStart;
    for await (const piece of pieces) {
      const next = timestamp(secondsAfter(deps.clock.now(), leaseSeconds));
      if (secondsBetween(leased_until, next) >= checkSeconds) {
        leased_until = next;
        const isOurs = await updateDownload(deps.database.db, reader, { lease, leased_until });
        if (!isOurs) throw new Error('The reader lost access, or began another download.');
      }
      if (typeof piece === 'string') lines += piece.split('\n').length - 1;
      yield piece;
    }
    is_whole = true;
  } finally {
    await operate(deps, operator, 'files sent', async (db) => {
      await releaseDownload(db, lease);
      const shares = sharesOf(context, merchant_id, { file, is_whole });
      const details = { file, lines, is_whole };
      const about = { subject_id, merchant_id, details, shares };
      return { ...about, result: null, outlivesSession: true };
    });
  }
}

const secondsBetween = (from: string, to: string) =>
  Temporal.Instant.from(from).until(Temporal.Instant.from(to)).total('seconds');

/** The filters that take any text. A search term may name a shopper. */
const typed = ['shopper', 'q', 'host', 'operator', 'after'];

/** The filters of a list, for the audit. */
export const typedFilters = (query: object): object =>
  Object.fromEntries(
    Object.entries(query).map(([name, value]) => [
      name,
      typed.includes(name) ? new FreeText(String(value)) : value,
    ]),
  );

const types: Record<string, string> = {
  csv: 'text/csv; charset=utf-8',
  html: 'text/html; charset=utf-8',
  pdf: 'application/pdf',
};

function answerFile(
  { reply }: Context,
  { name, policy, type }: Download,
  content: Readable,
): FastifyReply {
  const disposition = policy === undefined ? 'attachment' : 'inline';
  if (policy !== undefined) reply.header('content-security-policy', policy);
  return reply
    .type(type ?? types[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream')
    .header('content-disposition', `${disposition}; ${named(name)}`)
    .send(content);
}

const named = (name: string) => `filename="${name.replaceAll(/[^\w.-]/g, '_')}"`;
