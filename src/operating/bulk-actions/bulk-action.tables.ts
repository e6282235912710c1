import type { Generated, JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type {
  BulkActionActor,
  BulkActionKind,
  BulkActionProblem,
  BulkActionWanted,
} from './bulk-action.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    bulk_actions: {
      id: Fixed<string>;
      kind: Fixed<BulkActionKind>;
      actor: JSONColumnType<BulkActionActor, string, never>;
      wanted: JSONColumnType<BulkActionWanted, string, never>;
      created_at: Fixed<Timestamp>;
      finished_at: Timestamp | null;
      total: number | null;
      done: Generated<number>;
      failed: Generated<number>;
      problems: JSONColumnType<BulkActionProblem[]>;
      stopped: string | null;
      position: string | null;
      due_at: Timestamp | null;
      lease: string | null;
      leased_until: Timestamp | null;
    };
  }
}
