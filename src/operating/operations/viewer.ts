import type { FourEyesDefault } from '#merchants/merchant.ts';
import type { Permission } from '#operating/people/permission.ts';
import { narrowed, type Scope } from '#operating/search/scope.sql.ts';
import { type FoundIn, findRowById, rowKinds } from '#operating/search/search.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { type OperatorDeps, OperatorError } from '#record/actions/operate.ts';

export type ViewerDeps = OperatorDeps & FourEyesDefault;

/** A person at the console, or an operator at the command line, who reads or acts. */
export type Viewer<Deps = ViewerDeps> = {
  deps: Deps;
  /** The name that use cases record. */
  operator: string;
  /** Limits every read, mostly through `scoped`. The command line sees all merchants. */
  scope: Scope;
  may(permission: Permission): boolean;
  /**
   * Throws unless the person has recently re-authenticated, for an action that requires this only
   * for some rows. Absent at the command line.
   */
  requireReauthentication?(): void;
};

/**
 * The row does not exist, or the viewer may not see it. The console answers the same in both cases.
 */
export class NotFound extends OperatorError {
  /** The text that the console shows. */
  readonly shown: string;

  constructor(message: string, shown = 'There is nothing here.') {
    super(message);
    this.shown = shown;
  }
}

/** A filter, or a member of a body, that is not valid. */
export class BadInput extends OperatorError {
  readonly member: string;

  constructor(member: string, problem: string) {
    super(problem);
    this.member = member;
  }
}

/** A day such as 2026-02-30 has the right form but does not exist. */
export function plainDay(text: string): Temporal.PlainDate {
  try {
    return Temporal.PlainDate.from(text);
  } catch {
    throw new NotFound('There is no such day.', 'There is no such day.');
  }
}

/** The scope of a list: the viewer's own, or one merchant in it. */
export const scopeOf = ({ scope }: Pick<Viewer, 'scope'>, query: { merchant?: string }): Scope =>
  narrowed(scope, query.merchant);

/**
 * Finds a row in the viewer's scope. Any other row counts as not found, whether it exists or not.
 */
export async function mustSee<Table extends keyof typeof rowKinds>(
  { deps, scope }: Viewer<Pick<OperatorDeps, 'database' | 'clock'>>,
  table: Table,
  id: string,
): Promise<FoundIn<Table>> {
  const row = isUuid(id) && (await reading(deps, (db) => findRowById(db, scope, table, id)));
  if (!row) throw new NotFound(`There is no ${rowKinds[table]} ${id}.`);
  return row;
}
