import type { Database } from '#platform/database/database.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertRefusedRequest } from './refused-request.sql.ts';

// Requests whose signature was refused, for the signature doctor (decision 0005).

/** The signature doctor compares whole bodies. A longer one is cut here. */
const bodyBytesMax = 16 * 1024;
const headerCharactersMax = 1_024;
const retentionHours = 72;

export const refusedCutoff = (clock: Clock): Timestamp =>
  timestamp(clock.now().subtract({ hours: retentionHours }));

type Refused = {
  integration_id: string;
  /** The method and the path. */
  request: string;
  header: string | string[] | undefined;
  userAgent: string | undefined;
  raw: Buffer;
  expected: string;
  mistake: string | null;
};

/**
 * Keeps a refused request for its merchant's people. Only callers with a valid client secret get
 * here, and only as often as the expected signature is shown to them. If this fails, the refusal
 * stays the same.
 */
export async function keepRefusedRequest(
  deps: { database: Database; clock: Clock; random: Random; log: Logger },
  { integration_id, request, header, userAgent, raw, expected, mistake }: Refused,
): Promise<void> {
  const body = withoutCredentials(raw.subarray(0, bodyBytesMax).toString('utf8'));
  try {
    await insertRefusedRequest(deps.database.db, {
      id: deps.random.uuid(),
      integration_id,
      at: timestamp(deps.clock.now()),
      request,
      header: shorten([header ?? ''].flat().join(', ')),
      user_agent: userAgent === undefined ? null : shorten(userAgent),
      // PostgreSQL stores no NUL in text.
      body: body.replaceAll('\0', '\uFFFD'),
      body_bytes: raw.length,
      expected,
      mistake,
    });
  } catch (error) {
    deps.log.warn({ err: error, integration_id }, 'a refused request could not be stored');
  }
}

const shorten = (text: string) => withoutCredentials(text.slice(0, headerCharactersMax));

/** A client secret or a signing key that a caller may send by mistake. */
const credential = /(cs|sig|v1s|v1t)_(sandbox|production)_[\w-]{8,}/g;
const withoutCredentials = (text: string) => text.replaceAll(credential, '$1_$2_…');
