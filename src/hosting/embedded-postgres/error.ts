export class EmbeddedPostgresError extends Error {
  readonly code:
    | 'data_dir_in_use'
    | 'data_dir_unusable'
    | 'no_binaries'
    | 'port_taken'
    | 'start_failed';
  /** The process that holds the folder, for `data_dir_in_use`, if it is known. */
  readonly holderPid: number | null;

  constructor(
    code: EmbeddedPostgresError['code'],
    message: string,
    details: { cause?: unknown; holderPid?: number | null } = {},
  ) {
    super(message, details);
    this.name = 'EmbeddedPostgresError';
    this.code = code;
    this.holderPid = details.holderPid ?? null;
  }
}

export function dataDirUnusable(message: string, cause?: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError('data_dir_unusable', message, { cause });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
