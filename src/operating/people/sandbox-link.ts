import { timestamp } from '#platform/shared/clock.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { hashToken, newToken } from './console-session.ts';
import { insertPerson, lockPersonByEmail, updatePerson } from './person.sql.ts';
import { insertPersonLink } from './person-link.sql.ts';

const email = 'admin@sandbox.example';
const linkHours = 24;

/**
 * Creates a one-time link that signs a person in as the sandbox's demo administrator. It gives no
 * new rights: a caller that may run commands can already do everything. No link is created in
 * production, or if the console is on another machine.
 */
export async function createSignInLink(
  deps: OperatorDeps & { console: { url: string; allowsSignInLinks: boolean } },
  operator: string,
): Promise<string> {
  if (!deps.console.allowsSignInLinks) {
    throw new OperatorError(
      'Only a sandbox on this machine has sign-in links. Invite a person: `tranche operators invite`.',
    );
  }
  const id = deps.random.uuid();
  const token = newToken(deps.random);
  return await operate(deps, operator, 'console sign-in link', async (db, now) => {
    await insertPerson(db, {
      id,
      email,
      name: 'Demo administrator',
      roles: ['admin'],
      merchant_ids: null,
      oidc_subject: null,
      created_at: now,
      registered_at: null,
      access_since: now,
      unconfirmed_since: null,
      unconfirmed_by: null,
      revoked_at: null,
      identity_id: null,
    });
    const person = await lockPersonByEmail(db, email);
    if (!person) throw new Error('the demo administrator is missing');
    if (person.revoked_at !== null) await updatePerson(db, person.id, { revoked_at: null });
    const expires_at = timestamp(Temporal.Instant.from(now).add({ hours: linkHours }));
    const link = { person_id: person.id, purpose: 'sign_in' as const, created_at: now };
    const by = { made_by: operator, made_by_person_id: null, by_staff: true };
    const made = { ...by, access: null, released_at: now };
    await insertPersonLink(db, { ...link, ...made, token_hash: hashToken(token), expires_at });
    // The token is in the fragment, which neither servers nor Referer headers see.
    const result = `${deps.console.url}/sign-in#${token}`;
    return { subject_id: person.id, details: { expires_at }, result };
  });
}
