const sentences: Record<string, string> = {
  timeout: 'No answer came within ten seconds.',
  connection_closed: 'The connection was closed without an answer.',
  connect: 'No server is listening at this address.',
  dns: 'The host name was not found.',
  tls: 'The certificate was not accepted.',
  blocked_address: 'Callbacks may not be sent to this address.',
  invalid_response: 'The answer was not HTTP.',
  response_too_large: 'The headers of the answer were too large.',
};

/** Explains in a sentence why an exchange with a receiver failed. Null if no sentence fits. */
export const explainFailure = (reason: string | null): string | null =>
  sentences[reason ?? ''] ?? null;
