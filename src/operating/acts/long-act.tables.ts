import type { Generated, JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { LongActActor, LongActKind, LongActProblem, LongActWanted } from './long-act.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    long_acts: {
      id: Fixed<string>;
      kind: Fixed<LongActKind>;
      actor: JSONColumnType<LongActActor, string, never>;
      wanted: JSONColumnType<LongActWanted, string, never>;
      created_at: Fixed<Timestamp>;
      finished_at: Timestamp | null;
      total: number | null;
      done: Generated<number>;
      failed: Generated<number>;
      problems: JSONColumnType<LongActProblem[]>;
      position: string | null;
      due_at: Timestamp | null;
      lease: string | null;
      leased_until: Timestamp | null;
    };
  }
}
