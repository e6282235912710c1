import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    notes: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string>;
      at: Fixed<Timestamp>;
      person_id: Fixed<string | null>;
      name: Fixed<string>;
      by_staff: Fixed<boolean>;
      text: string;
    };
  }
}
