import type { ColumnType, Generated } from 'kysely';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    audit: {
      only_row: ColumnType<boolean, never, never>;
      after: string;
      leased_until: Timestamp | null;
      differences: Generated<number>;
      proved_at: Timestamp | null;
      proved_differences: number | null;
      after_merchant: string | null;
    };
  }
}
