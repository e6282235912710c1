const sentences: Record<string, string> = {
  timeout: 'No answer came within ten seconds.',
  connection_closed: 'The connection was closed without an answer.',
  connect: 'No server listens at this address.',
  dns: 'The name of the host was not found.',
  tls: 'The certificate was not accepted.',
  blocked_address: 'Callbacks may not be sent to this address.',
  invalid_response: 'The answer was not HTTP.',
  response_too_large: 'The headers of the answer were too large.',
};

/** Says in a sentence why an exchange with a receiver failed; null for a reason without one. */
export const explainFailure = (reason: string | null): string | null =>
  sentences[reason ?? ''] ?? null;
