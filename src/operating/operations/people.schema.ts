import Type from 'typebox';
import { merchantAlerts } from '#purchases/messages/merchant-mail.ts';
import { Id, nullable, oneOf, paging } from './list.schema.ts';

export const Person = Type.Object({
  id: Type.String(),
  email: Type.String(),
  name: Type.String(),
  roles: Type.Array(Type.String()),
  /** Null means all merchants. */
  merchant_ids: nullable(Type.Array(Type.String())),
  created_at: Type.String(),
  revoked_at: nullable(Type.String()),
  /**
   * Whether they can sign in: they have accepted this access, it is not revoked, and they have a
   * passkey or an account at the OIDC issuer.
   */
  is_registered: Type.Boolean(),
  /**
   * Whether they can be the second approver. If not, a merchant's administrator gave them access,
   * or an administrator saw their link, and no administrator of all merchants has confirmed them
   * since.
   */
  is_confirmed: Type.Boolean(),
  /** The id of the person's first access, if this is a later one. Only the staff can read it. */
  identity_id: nullable(Type.String()),
  /** An invitation that is neither used nor expired. */
  invitation: nullable(
    Type.Object({
      made_by: Type.String(),
      expires_at: Type.String(),
      /** Whether it is waiting for a second administrator. */
      is_held: Type.Boolean(),
      /**
       * The access that the person gets when the invitation is released. Null if they already have
       * it.
       */
      access: nullable(
        Type.Object({
          name: Type.Optional(Type.String()),
          roles: Type.Array(Type.String()),
          merchant_ids: nullable(Type.Array(Type.String())),
        }),
      ),
      /** Why the reader may not release it. Null if the invitation itself does not prevent it. */
      release_refusal: nullable(Type.String()),
    }),
  ),
});
export type Person = Type.Static<typeof Person>;

/** GET /api/roles: the roles that the reader may give, each with its permissions. */
export const Roles = Type.Object({
  data: Type.Array(Type.Object({ role: Type.String(), permissions: Type.Array(Type.String()) })),
});
export type Roles = Type.Static<typeof Roles>;

export const PeopleQuery = Type.Object({
  merchant: Type.Optional(Id),
  after: paging.after,
  limit: paging.limit,
});

const RoleNames = Type.Array(Type.String({ maxLength: 20 }), { minItems: 1, maxItems: 20 });
const MerchantIds = nullable(
  Type.Array(Type.String({ maxLength: 36 }), { minItems: 1, maxItems: 1_000 }),
);
const Name = Type.String({ minLength: 1, maxLength: 100 });

export const InviteBody = Type.Object({
  email: Type.String({ minLength: 3, maxLength: 254 }),
  name: Type.Optional(Name),
  roles: RoleNames,
  /** Null means all merchants. */
  merchant_ids: MerchantIds,
});

/** The link goes to the person by mail, or waits for a second administrator. */
export const Invitation = Type.Object({
  person: Person,
  delivery: Type.Union([Type.Literal('mailed'), Type.Literal('held')]),
  expires_at: Type.String(),
});
export type Invitation = Type.Static<typeof Invitation>;

/**
 * POST /api/people/:id/release and /confirm: the name and the access that the administrator read.
 * If they have changed since, nothing is released or confirmed.
 */
export const ReadAccessBody = Type.Object({
  was: Type.Object(
    { name: Type.Optional(Name), roles: RoleNames, merchant_ids: MerchantIds },
    { additionalProperties: false },
  ),
});

/** The answer to a release. The link is shown only once, and only if mail is off. */
export const ReleasedInvitation = Type.Object({
  person: Person,
  url: nullable(Type.String()),
  expires_at: Type.String(),
});
export type ReleasedInvitation = Type.Static<typeof ReleasedInvitation>;

const Access = {
  roles: Type.Optional(RoleNames),
  merchant_ids: Type.Optional(MerchantIds),
};

/** PATCH /api/people/:id. Absent members stay as they are. */
export const ChangePersonBody = Type.Object({
  name: Type.Optional(Name),
  ...Access,
  /** The values that the administrator read. If they have changed since, the change is refused. */
  was: Type.Optional(Type.Object(Access, { additionalProperties: false })),
});

export const SessionParams = Type.Object({
  id: Type.String({ format: 'uuid' }),
  session: Type.String({ format: 'uuid' }),
});

/** GET /api/people/:id/alert-mails: the events of a merchant that the person may get mail about. */
export const AlertMailsQuery = Type.Object({ merchant: Id });
export const AlertMails = Type.Object({
  data: Type.Array(Type.Object({ kind: oneOf(merchantAlerts), is_wanted: Type.Boolean() })),
});
export type AlertMails = Type.Static<typeof AlertMails>;

/** POST /api/people/:id/alert-mails: the events that the person gets mail about from now on. */
export const ChooseAlertMails = Type.Object({
  merchant_id: Id,
  kinds: Type.Array(oneOf(merchantAlerts), { maxItems: merchantAlerts.length }),
});
