import type Stripe from 'stripe';
import type { Gateway } from '#gateway/gateway.ts';

// The gateway has no place for notes of an account. A customer without payments serves as one.

/** All marks of the account have this address, because the gateway finds customers by address. */
const markEmail = 'tranche-mark@example.com';

/** The part of the port that tells whether a database was restored (decision 0097). */
export function markCalls(
  stripe: Stripe,
  fail: (error: unknown) => never,
): Pick<Gateway, 'listMarks' | 'writeMark'> {
  return {
    async listMarks() {
      try {
        const marks = [];
        for await (const { id, metadata } of stripe.customers.list({
          email: markEmail,
          limit: 100,
        })) {
          const { database, beat } = metadata;
          if (database) marks.push({ mark_ref: id, database, beat: Number(beat ?? 0) });
        }
        return marks;
      } catch (error) {
        fail(error);
      }
    },

    async writeMark({ mark_ref, database, beat }) {
      try {
        let ref = mark_ref;
        if (ref === null) {
          const description = 'A mark of Tranche. Do not delete it: it protects against restores.';
          const params = { email: markEmail, description, metadata: { database } };
          // Two processes that begin at once make one mark.
          const made = await stripe.customers.create(params, {
            idempotencyKey: `mark:${database}`,
          });
          ref = made.id;
        }
        const idempotencyKey = `mark:${database}:${beat}`;
        await stripe.customers.update(ref, { metadata: { beat } }, { idempotencyKey });
      } catch (error) {
        fail(error);
      }
    },
  };
}
