import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { alertKinds, endOf } from '#platform/shared/alert-kinds.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { Alert, AlertHandling, AlertState } from '#record/alerts/alert.sql.ts';
import { closeAlert, closerOf, explainBadCloser, takeAlert } from '#record/alerts/handle-alert.ts';
import { actionsOn } from './action.ts';
import { namesFor } from './actors.ts';
import { describeAlerts } from './alert-text.ts';
import { findAlertWithin, listAlertsPage } from './alerts.sql.ts';
import { AlertRow, AlertsQuery, CloseAlert } from './audit.schema.ts';
import { defineList, readList } from './list.ts';
import { listMerchantNames, type MerchantName } from './owner.sql.ts';
import { NotFound, scopeOf, type Viewer } from './viewer.ts';

/** A difference between the gateway's records and our rows is an alert of one of these kinds. */
const differenceKinds = Object.keys(alertKinds).filter((kind) => endOf(kind) === 'as a difference');

type Kind = {
  name: string;
  permission: 'alerts.read' | 'differences.read';
  kinds: string[] | null;
};

/** The newest alerts first, of all kinds or of some. */
const listOf = ({ name, permission, kinds }: Kind) =>
  defineList({
    // The detail of an alert may quote a shopper.
    namesPeople: true,
    name,
    permission,
    query: AlertsQuery,
    row: AlertRow,
    read(viewer, query, page) {
      const scope = scopeOf(viewer, query);
      return readList(
        viewer.deps,
        page,
        (db, range) => listAlertsPage(db, scope, { ...query, kinds }, range),
        (db, rows) => presentAlerts(viewer, db, rows),
      );
    },
    columns: [
      ['At', (row) => row.at],
      ['Kind', (row) => row.kind],
      ['State', (row) => row.state],
      ['Merchant', (row) => row.merchant_name],
      ['Order', (row) => row.client_reference_id],
      ['Text', (row) => row.text],
      ['Detail', (row) => row.detail],
      ['Taken by', (row) => row.taken_by_name],
      ['Closed by', (row) => row.closed_by_name],
      ['Reason', (row) => row.close_reason],
      ['ID', (row) => row.id],
    ],
  });

export const alertList = listOf({ name: 'alerts', permission: 'alerts.read', kinds: null });
export const differenceList = listOf({
  name: 'differences',
  permission: 'differences.read',
  kinds: differenceKinds,
});

export async function readAlert(viewer: Viewer, id: string) {
  const [alert] = await reading(viewer.deps, async (db) => {
    const found = await findAlertWithin(db, viewer.scope, id);
    return found ? await presentAlerts(viewer, db, [found]) : [];
  });
  if (!alert) throw new NotFound(`There is no alert ${id}.`);
  return alert;
}

export async function readDifference(viewer: Viewer, id: string) {
  const alert = await readAlert(viewer, id);
  if (!differenceKinds.includes(alert.kind)) throw new NotFound(`There is no difference ${id}.`);
  return alert;
}

const on = actionsOn({
  name: 'alerts',
  response: AlertRow,
  see: async (_, id) => ({ id }),
  read: (viewer, { id }) => readAlert(viewer, id),
});
const onDifference = actionsOn({
  name: 'differences',
  response: AlertRow,
  see: readDifference,
  read: (viewer, { id }) => readDifference(viewer, id),
});

export const alertActions = {
  take: on('take', {
    permission: 'alerts.handle',
    change: ({ deps, operator }, { id }) => takeAlert(deps, operator, id),
  }),
  close: on('close', {
    permission: 'alerts.handle',
    body: CloseAlert,
    async change(viewer, { id }, { reason }) {
      const { deps, operator } = viewer;
      // Another person must close an alert that an operator caused, and must re-authenticate first.
      // `caused_by` never changes, so it can be read before the action.
      const alert = isUuid(id)
        ? await reading(deps, (db) => findAlertWithin(db, viewer.scope, id))
        : null;
      if (alert && alert.caused_by !== null) viewer.requireReauthentication?.();
      await closeAlert(deps, operator, id, reason);
    },
  }),
  closeDifference: onDifference('close', {
    permission: 'differences.close',
    body: CloseAlert,
    change: ({ deps, operator }, { id }, { reason }) => closeAlert(deps, operator, id, reason),
  }),
};

/** Alerts with their merchants, and with the names of the people who took and closed them. */
async function presentAlerts(
  { deps, operator, scope }: Viewer,
  db: Handle,
  rows: (Alert & AlertHandling)[],
) {
  const merchant_ids = rows.flatMap(({ merchant_id }) => merchant_id ?? []);
  const merchants = await listMerchantNames(db, scope, merchant_ids);
  const people = rows.flatMap((row) => [
    ...[row.caused_person_id, row.taken_person_id, row.closed_person_id],
  ]);
  const show = await namesFor({ scope }, db, people);
  const isAll = scope === 'all merchants';
  const describe = await describeAlerts(deps.clock, db, scope, rows, merchants);
  // An operator at the command line is not a person of the console, so the name stays as it was
  // given.
  const namesOf = <Member extends string>(
    member: Member,
    person_id: string | null,
    operator: string | null,
  ) => {
    const name = operator === null ? null : show(person_id, operator).name;
    return { [member]: isAll ? operator : name, [`${member}_name`]: name } as Record<
      Member | `${Member}_name`,
      string | null
    >;
  };
  const closer = await closerOf(deps, db, operator);
  return rows.map((row) => ({
    ...row,
    ...describe(row),
    state: stateOf(row),
    ...clockOf(merchants.get(row.merchant_id ?? '')),
    close_refusal: explainBadCloser(row, closer),
    ...namesOf('caused_by', row.caused_person_id, row.caused_by),
    ...namesOf('taken_by', row.taken_person_id, row.taken_by),
    ...namesOf('closed_by', row.closed_person_id, row.closed_by),
  }));
}

const clockOf = (merchant?: MerchantName) => ({
  merchant_name: merchant?.name ?? null,
  time_zone: merchant?.time_zone ?? null,
  clock_ahead_ms: merchant?.clock_ahead_ms ?? 0,
});

function stateOf({ taken_at, closed_at }: AlertHandling): AlertState {
  if (closed_at !== null) return 'closed';
  return taken_at === null ? 'open' : 'taken';
}
