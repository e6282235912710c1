import { type Approver, isSamePerson } from '#platform/shared/approver.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { type OperatorDeps, OperatorError, personOf } from './operate.ts';

/**
 * Refuses a person who may not be an approver yet, at each step of a decision that needs two
 * people, and where the review of refunds is lifted. A person may approve only once their passkey
 * and their access have been the same for some time. By then others will have noticed a person who
 * took over a colleague's account or invited themselves under a second e-mail address. A merchant's
 * administrator could invite such an address unnoticed, so a person who got access from one may
 * approve only once the service's own staff has confirmed them. At the command line nothing is
 * refused: its users are as powerful as root anyway.
 */
export function mustBeApprover(deps: ActingDeps): void {
  const why = explainNoApprover(deps);
  if (why !== null) throw new OperatorError(why);
}

type ActingDeps = Pick<OperatorDeps, 'origin' | 'clock'>;

/** Why a person may not be an approver yet, or null. */
export function explainNoApprover({ origin, clock }: ActingDeps): string | null {
  if (!origin || !('person_id' in origin)) return null;
  const { counts_from } = origin;
  if (counts_from === null) {
    return 'This needs two people with passkeys. Add a passkey, or ask another person.';
  }
  if (counts_from === 'unconfirmed') {
    return 'You can be the second approver once an administrator of the payment service has confirmed you. Until then, ask another person.';
  }
  if (counts_from <= timestamp(clock.now())) return null;
  return `Your passkey or your access is new. You can be the second approver from ${counts_from.slice(0, 16).replace('T', ' ')} UTC. Until then, ask another person.`;
}

/** The person of a session, or the name at the command line. */
export const approverOf = (deps: OperatorDeps, operator: string): Approver => ({
  person_id: personOf(deps),
  name: operator,
});

/** A person who agreed before, and the refusal that they get if they agree again. */
export type Agreed = { by: Approver; refusal: string };

/**
 * The only place that decides whether an operator can be the second approver where money moves: a
 * refund above the threshold, a payout, its return, a bank account (decisions 0074 and 0081).
 * Called under the row's lock, before the second agreement is written.
 */
export function mustBeSecondApprover(deps: OperatorDeps, operator: string, agreed: Agreed[]): void {
  const approver = approverOf(deps, operator);
  const own = agreed.find(({ by }) => isSamePerson(by, approver));
  if (own) throw new OperatorError(own.refusal);
  mustBeApprover(deps);
}
