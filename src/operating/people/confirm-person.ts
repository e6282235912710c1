import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import {
  actorOf,
  type OperatorDeps,
  OperatorError,
  operate,
  personOf,
} from '#record/actions/operate.ts';
import { mustBeApprover } from '#record/actions/second-person.ts';
import { isAsRead, type ReadAccess } from './check-person.ts';
import { mustLockId, refuseOwnAccess, refuseRevoked } from './manage-people.ts';
import { identityOf, listWithSignInMethod, type Person, updatePerson } from './person.sql.ts';
import { queuePersonMail } from './queue-person-mail.ts';

/**
 * An administrator of all merchants vouches that a person is not a second identity of the
 * merchant's administrator who gave them (more) access, or of the administrator who saw their link.
 * From then on the person can be the second approver. `was` is the access that the administrator
 * read. The person must have accepted their invitation: before that the administrator cannot know
 * who will use the link.
 */
export async function confirmPerson(
  deps: OperatorDeps & QueueDeps,
  operator: string,
  id: string,
  was: ReadAccess,
): Promise<Person> {
  return await operate(deps, operator, 'operators confirm person', async (db, now) => {
    const person = await mustLockId(db, id);
    refuseOwnAccess(deps, person);
    refuseRevoked(person);
    const { email, roles, merchant_ids, unconfirmed_since, unconfirmed_by } = person;
    if (unconfirmed_since === null) {
      throw new OperatorError(`${email} needs no confirmation.`);
    }
    if (unconfirmed_by === personOf(deps)) {
      throw new OperatorError(
        'You gave this access, or saw its link. Another administrator has to confirm it.',
      );
    }
    const isReady = (await listWithSignInMethod(db, [identityOf(person)])).size > 0;
    if (person.registered_at === null || !isReady) {
      throw new OperatorError(`${email} has not accepted the invitation yet.`);
    }
    if (!isAsRead(was, person)) {
      throw new OperatorError('This access was changed in the meantime. Look at it again.');
    }
    mustBeApprover(deps);
    const change = { unconfirmed_since: null, unconfirmed_by: null };
    await updatePerson(db, id, change);
    const by = actorOf(deps, operator);
    await queuePersonMail(deps, db, { person_id: id, kind: 'confirmed', by, at: now });
    const details = { email, roles, merchant_ids, unconfirmed_since, unconfirmed_by };
    return { subject_id: id, details, result: { ...person, ...change } };
  });
}
