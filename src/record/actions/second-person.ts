import { timestamp } from '#platform/shared/clock.ts';
import { type OperatorDeps, OperatorError } from './operate.ts';

/**
 * Part of every decision that needs two people, of the first and of the second. A person counts only
 * after a time with the same passkey: one who took over a colleague's place, or invited themselves
 * under a second address, is noticed before that. The command line is root-equivalent.
 */
export function mustCountAsPerson({ origin, clock }: Pick<OperatorDeps, 'origin' | 'clock'>): void {
  if (!origin || !('person_id' in origin)) return;
  const { counts_from } = origin;
  if (counts_from === null) {
    throw new OperatorError(
      'This needs two people with passkeys. Add a passkey of yours, or ask another person.',
    );
  }
  if (counts_from <= timestamp(clock.now())) return;
  throw new OperatorError(
    `Your passkey is new. It counts where two people are needed from ${counts_from.slice(0, 16).replace('T', ' ')} UTC on. Ask another person until then.`,
  );
}
