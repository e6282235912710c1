import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    downloads: {
      person_id: Fixed<string>;
      lease: string;
      leased_until: Timestamp;
    };
  }
}
