import { findMerchant } from '#merchants/merchant.sql.ts';
import type { MerchantAlertKind } from '#purchases/messages/merchant-mail.ts';
import { type OperatorDeps, OperatorError, operate, personOf } from '#record/actions/operate.ts';
import { listAlertChoices, updateAlertChoices } from './alert-mail.sql.ts';
import { alertMailsOf, isExport } from './alert-mail.ts';
import { nextExportOn } from './export-schedule.ts';
import { giverOf, mustLockId, refuseRevoked, refuseToManage } from './manage-people.ts';
import { identityOf } from './person.sql.ts';

/**
 * An administrator chooses which events of a merchant are mailed to one of its people. This gives
 * no access: a person gets mail only about what they may read.
 */
export async function chooseAlertMails(
  deps: OperatorDeps,
  operator: string,
  person_id: string,
  { merchant_id, kinds }: { merchant_id: string; kinds: MerchantAlertKind[] },
): Promise<void> {
  await operate(deps, operator, 'operators alert-mails', async (db) => {
    const person = await mustLockId(db, person_id);
    refuseRevoked(person);
    if (identityOf(person) !== personOf(deps)) refuseToManage(await giverOf(deps, db), person);
    if (!person.merchant_ids?.includes(merchant_id)) {
      throw new OperatorError(`${person.email} is not one of this merchant’s own people.`);
    }
    const of = { merchant_id, person_id };
    const known = alertMailsOf(person.roles, await listAlertChoices(db, of));
    const bad = kinds.filter((kind) => !known.some((one) => one.kind === kind));
    if (bad.length > 0) {
      throw new OperatorError(
        `The roles of ${person.email} do not allow mail about ${bad.join(', ')}. Leave these events out, or change the roles.`,
      );
    }
    const wanted = known.map(({ kind }) => ({ kind, is_wanted: kinds.includes(kind) }));
    const merchant = await findMerchant(db, deps.clock, merchant_id);
    const today = merchant?.now().toZonedDateTimeISO(merchant.territory.time_zone).toPlainDate();
    const dueOn = (kind: MerchantAlertKind) =>
      today && isExport(kind) ? nextExportOn(kind, today).toString() : null;
    const rows = wanted.map((one) => ({ ...one, due_on: one.is_wanted ? dueOn(one.kind) : null }));
    if (rows.length > 0) await updateAlertChoices(db, of, rows);
    const named = (some: typeof known) =>
      some.filter(({ is_wanted }) => is_wanted).map(({ kind }) => kind);
    const details = { email: person.email, mails: named(wanted), before: { mails: named(known) } };
    return { subject_id: person_id, merchant_id, details, result: null };
  });
}
