/** The receiver has an address that callbacks may not reach. */
export class Blocked extends Error {}
/** The receiver's name has no address, or no name server answered in time. */
export class Unresolved extends Error {}

const tlsCodes =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|EPROTO|HOSTNAME_MISMATCH|ERR_OSSL)/;

/** The attempt began too late for its lease, so nothing was sent (decision 0033). */
export const notSent = 'not_sent';

const ourFailures = new Set(['no_signing_key', 'no_transaction_verify', 'interrupted', notSent]);

/** Whether a failure is ours and says nothing about the receiver. */
export const isOurFailure = (reason: string | null) => ourFailures.has(reason ?? '');

/**
 * Reasons by undici's error codes. Its error classes are not used, so that commands need not load
 * undici.
 */
const reasons: Record<string, string> = {
  UND_ERR_HEADERS_OVERFLOW: 'response_too_large',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  // The process is stopping and closed the connection itself.
  UND_ERR_DESTROYED: 'interrupted',
  UND_ERR_CLOSED: 'interrupted',
  // undici fails an assertion when a receiver switches protocols without being asked.
  ERR_ASSERTION: 'invalid_response',
};

/** The reason that an attempt records for an exchange without an answer. */
export function failureReason(error: unknown, isSent: boolean): string {
  const { name, code = '', cause } = error as { name?: string; code?: string; cause?: unknown };
  if (error instanceof Blocked) return 'blocked_address';
  if (error instanceof Unresolved) return 'dns';
  const known = reasons[code];
  if (known !== undefined) return known;
  if (name === 'HTTPParserError') return 'invalid_response';
  if (isSent) return 'connection_closed';
  if (tlsCodes.test(code)) return 'tls';
  if (cause !== undefined && cause !== error) return failureReason(cause, isSent);
  return 'connect';
}
