import type { Gateway } from '#gateway/gateway.ts';
import { slotOf, slots } from '#gateway/heartbeat-slots.ts';
import type { StripeApi } from './api.ts';
import { fail } from './errors.ts';

// The gateway cannot store notes on an account. A customer without payments serves as a note.

/**
 * All heartbeats of the account have this e-mail address, because the gateway can find customers by
 * it.
 */
const heartbeatEmail = 'tranche-heartbeat@example.com';

/** A request changes only the members of the metadata that it names. */
const memberOf = (slot: number) => `count_${slot}`;

/** The calls of the gateway's port that show whether a database was restored (decision 0097). */
export function heartbeatCalls({
  stripe,
}: StripeApi): Pick<Gateway, 'listHeartbeats' | 'writeHeartbeat'> {
  return {
    async listHeartbeats() {
      const query = { email: heartbeatEmail, limit: 100 };
      try {
        const heartbeats = [];
        for await (const { id, metadata } of stripe.customers.list(query)) {
          const { database, gateway } = metadata;
          if (!database) continue;
          const named = gateway ? { gateway } : {};
          const count = Math.max(...slots.map((slot) => Number(metadata[memberOf(slot)] ?? 0)));
          heartbeats.push({ heartbeat_ref: id, database, ...named, count });
        }
        return heartbeats;
      } catch (error) {
        fail(error);
      }
    },

    async writeHeartbeat({ heartbeat_ref, database, gateway, count }) {
      const named = gateway === undefined ? {} : { gateway };
      try {
        let ref = heartbeat_ref;
        if (ref === null) {
          const description =
            'The heartbeat of Tranche. Do not delete it: it protects against restores.';
          const params = { email: heartbeatEmail, description, metadata: { database, ...named } };
          // Two processes that begin at once create only one customer.
          const made = await stripe.customers.create(params, {
            idempotencyKey: `heartbeat:${database}`,
          });
          ref = made.id;
        }
        // Set no idempotency key: under the same one, an overwritten heartbeat could not be written
        // again.
        const metadata = { [memberOf(slotOf(count))]: count, ...named };
        await stripe.customers.update(ref, { metadata });
      } catch (error) {
        fail(error);
      }
    },
  };
}
