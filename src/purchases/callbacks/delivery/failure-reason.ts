import { errors } from 'undici';
import { Blocked, Unresolved } from './connection-guard.ts';

const tlsCodes =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|EPROTO|HOSTNAME_MISMATCH|ERR_OSSL)/;

/** The attempt began too late for its lease, so nothing was sent (decision 0033). */
export const notSent = 'not_sent';

const ourFailures = new Set(['no_signing_key', 'interrupted', notSent]);

/** Whether a failure is ours and says nothing about the receiver. */
export const isOurFailure = (reason: string | null) => ourFailures.has(reason ?? '');

/** The reason that an attempt records for an exchange without an answer. */
export function failureReason(error: unknown, isSent: boolean): string {
  const { code = '', cause } = error as { code?: string; cause?: unknown };
  if (error instanceof Blocked) return 'blocked_address';
  if (error instanceof Unresolved) return 'dns';
  if (error instanceof errors.HeadersOverflowError) return 'response_too_large';
  if (
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError
  ) {
    return 'timeout';
  }
  // The process is stopping and closed the connection itself.
  if (error instanceof errors.ClientDestroyedError || error instanceof errors.ClientClosedError) {
    return 'interrupted';
  }
  // undici fails an assertion when a receiver switches protocols without being asked.
  if (error instanceof errors.HTTPParserError || code === 'ERR_ASSERTION')
    return 'invalid_response';
  if (isSent) return 'connection_closed';
  if (tlsCodes.test(code)) return 'tls';
  if (cause !== undefined && cause !== error) return failureReason(cause, isSent);
  return 'connect';
}
