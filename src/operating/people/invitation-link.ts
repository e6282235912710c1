import type { Handle } from '#platform/database/database.ts';
import type { Approver } from '#platform/shared/approver.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { type OperatorDeps, personOf } from '#record/actions/operate.ts';
import { hashToken, newToken } from './console-session.ts';
import { permissionsOf } from './permission.ts';
import { listAccesses, type Person } from './person.sql.ts';
import {
  deleteHeldLinks,
  type InvitedAccess,
  insertPersonLink,
  type LinkPurpose,
  listInvitations,
  type PersonLink,
} from './person-link.sql.ts';
import { personMailContext } from './person-mail.ts';
import { queuePersonMail } from './queue-person-mail.ts';

const invitationHours = 72;

export const endOf = (now: Timestamp) =>
  timestamp(Temporal.Instant.from(now).add({ hours: invitationHours }));

/**
 * Inserts the link of an invitation. Without a token, the link waits for a second administrator and
 * cannot be opened.
 */
export async function insertInvitation(
  deps: OperatorDeps,
  db: Handle,
  operator: string,
  person: Person,
  link: {
    token: string | null;
    purpose: LinkPurpose;
    access?: InvitedAccess;
    by_staff: boolean;
    now: Timestamp;
  },
): Promise<Timestamp> {
  const { token, purpose, access, by_staff, now } = link;
  const expires_at = endOf(now);
  await insertPersonLink(db, {
    token_hash: token === null ? deps.random.bytes(32) : hashToken(token),
    person_id: person.id,
    purpose,
    created_at: now,
    expires_at,
    made_by: operator,
    made_by_person_id: personOf(deps),
    by_staff,
    access: access ?? null,
    released_at: token === null ? null : now,
  });
  return expires_at;
}

/**
 * Mails the link of an invitation. A person on the service's staff gets a notice without a link.
 */
export async function mailLink(
  deps: QueueDeps & { sealing: Sealing },
  db: Handle,
  mail: {
    person: Person;
    purpose: LinkPurpose;
    by: Approver;
    token: string;
    expires_at: Timestamp;
    mailId: string;
    now: Timestamp;
  },
): Promise<void> {
  const { person, purpose, by, token, expires_at, mailId: id, now: at } = mail;
  if (purpose === 'notice') {
    const told = { person_id: person.id, kind: 'invited_elsewhere' as const, by, at };
    return await queuePersonMail(deps, db, told);
  }
  const sealed_token = deps.sealing.seal(token, personMailContext({ id }));
  const link = { id, sealed_token };
  const about = { person_id: person.id, kind: 'invitation' as const, by };
  await queuePersonMail(deps, db, { ...about, facts: { expires_at }, link, at });
}

/** Without `sealing` no link is mailed. */
export type SeparateDeps = OperatorDeps & QueueDeps & { sealing?: Sealing };

/**
 * Divides the invitations of an access that was separated into two. Otherwise one merchant could
 * end another merchant's invitations. An invitation that is waiting for a second administrator is
 * divided by merchants. If a merchant's administrator requested it for a registered person, only a
 * part with a merchant that this administrator manages gets a share. An invitation whose link
 * already works stays with the first part. The other part gets a new link, by mail or, without
 * mail, from a second administrator.
 */
export async function separateInvitations(
  deps: SeparateDeps,
  db: Handle,
  { first, other, now }: { first: Person; other: Person; now: Timestamp },
): Promise<void> {
  const links = await listInvitations(db, [first.id], now);
  await deleteHeldLinks(db, first.id, { isStaff: true });
  for (const link of links.filter(({ released_at }) => released_at === null)) {
    const { access } = link;
    const all = access?.merchant_ids ?? null;
    const parts: [Person, string[] | null][] =
      all === null ? [[first, null]] : await divide(db, link, all, { first, other });
    for (const [{ id: person_id }, merchant_ids] of parts) {
      if (merchant_ids?.length === 0) continue;
      const part = { ...link, person_id, access: access && { ...access, merchant_ids } };
      await insertPersonLink(db, { ...part, token_hash: deps.random.bytes(32) });
    }
  }
  const released = links.find(({ released_at }) => released_at !== null);
  if (released) await copyReleased(deps, db, released, other, now);
}

/** The merchants whose people a person manages, in any of their accesses. */
export async function listManaged(db: Handle, person_id: string): Promise<string[]> {
  const accesses = await listAccesses(db, person_id);
  return accesses
    .filter(({ roles }) => permissionsOf(roles, false).includes('people.manage'))
    .flatMap(({ merchant_ids }) => merchant_ids ?? []);
}

async function divide(
  db: Handle,
  { by_staff, made_by_person_id }: PersonLink,
  all: string[],
  { first, other }: { first: Person; other: Person },
): Promise<[Person, string[]][]> {
  const others = other.merchant_ids ?? [];
  const own = (first.merchant_ids ?? []).filter((id) => !others.includes(id));
  const isForAll = by_staff || made_by_person_id === null || first.registered_at === null;
  const managed = isForAll ? [] : await listManaged(db, made_by_person_id);
  const gets = (ids: string[]) => isForAll || ids.some((id) => managed.includes(id));
  // A merchant that the person does not have yet goes to the inviter's part.
  const isOther = (id: string) => (gets(own) ? others.includes(id) : !own.includes(id));
  return [
    [first, gets(own) ? all.filter((id) => !isOther(id)) : []],
    [other, gets(others) ? all.filter(isOther) : []],
  ];
}

async function copyReleased(
  deps: SeparateDeps,
  db: Handle,
  link: PersonLink,
  person: Person,
  now: Timestamp,
): Promise<void> {
  const { purpose, expires_at, made_by: name, made_by_person_id: person_id } = link;
  const { sealing, random } = deps;
  const [token, mailId] = [newToken(random), random.uuid()];
  const copy = { ...link, person_id: person.id, token_hash: hashToken(token) };
  if (purpose !== 'notice' && (!deps.sendsMessages || !sealing)) {
    const { roles, merchant_ids } = person;
    const access = { roles, merchant_ids };
    return await insertPersonLink(db, { ...copy, access, released_at: null });
  }
  await insertPersonLink(db, copy);
  if (purpose === 'notice' || !sealing) return;
  const by = { person_id, name };
  const mail = { person, purpose, by, token, expires_at, mailId, now };
  await mailLink({ ...deps, sealing }, db, mail);
}
