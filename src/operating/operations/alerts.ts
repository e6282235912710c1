import { remedies } from '#checks/reconciliation/compare.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { personOf } from '#record/actions/operate.ts';
import { listPersonNames } from '#record/actions/person-names.sql.ts';
import type { Alert, AlertHandling, AlertState } from '#record/alerts/alert.sql.ts';
import { closeAlert, explainBadCloser, takeAlert } from '#record/alerts/handle-alert.ts';
import { actionsOn } from './action.ts';
import { findAlertWithin, pageAlerts } from './alerts.sql.ts';
import { AlertRow, AlertsQuery, CloseAlert } from './audit.schema.ts';
import { defineList, readList } from './list.ts';
import { listMerchantNames } from './owner.sql.ts';
import { NotFound, scopeOf, type Viewer } from './viewer.ts';

/** A difference between the gateway's records and our rows is an alert of one of these kinds. */
const differenceKinds = Object.keys(remedies).map((kind) => `gateway_${kind}`);

type Kind = {
  name: string;
  permission: 'alerts.read' | 'differences.read';
  kinds: string[] | null;
};

/** The newest alerts first, of all kinds or of some. */
const listOf = ({ name, permission, kinds }: Kind) =>
  defineList({
    // The detail may quote a shopper.
    namesPeople: true,
    name,
    permission,
    query: AlertsQuery,
    row: AlertRow,
    read(viewer, query, page) {
      const seen = { ...viewer, scope: scopeOf(viewer, query) };
      return readList(
        viewer.deps,
        page,
        (db, range) => pageAlerts(db, seen.scope, query.state ?? null, range, kinds),
        (db, rows) => presentAlerts(seen, db, rows),
      );
    },
    columns: [
      ['At', (row) => row.at],
      ['Kind', (row) => row.kind],
      ['State', (row) => row.state],
      ['Merchant', (row) => row.merchant_name],
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

/** One alert as it is now. */
export async function readAlert(viewer: Viewer, id: string) {
  const [alert] = await reading(viewer.deps, async (db) => {
    const found = await findAlertWithin(db, viewer.scope, id);
    return found ? await presentAlerts(viewer, db, [found]) : [];
  });
  if (!alert) throw new NotFound(`There is no alert ${id}.`);
  return alert;
}

/** One difference as it is now. */
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
    change: ({ deps, operator }, { id }, { reason }) => closeAlert(deps, operator, id, reason),
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
  const names = await listPersonNames(db, people);
  return rows.map((row) => ({
    ...row,
    state: stateOf(row),
    merchant_name: merchants.get(row.merchant_id ?? '')?.name ?? null,
    close_refusal: explainBadCloser(row, { operator, person_id: personOf(deps) }),
    // An operator of the command line has no person. The name stays as it was given.
    caused_by_name: names.get(row.caused_person_id ?? '') ?? row.caused_by,
    taken_by_name: names.get(row.taken_person_id ?? '') ?? row.taken_by,
    closed_by_name: names.get(row.closed_person_id ?? '') ?? row.closed_by,
  }));
}

function stateOf({ taken_at, closed_at }: AlertHandling): AlertState {
  if (closed_at !== null) return 'closed';
  return taken_at === null ? 'open' : 'taken';
}
