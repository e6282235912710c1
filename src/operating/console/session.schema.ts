import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import Type from 'typebox';
import { Id, nullable } from '#operating/operations/list.schema.ts';

const Token = Type.String({ minLength: 1, maxLength: 100 });
const Name = Type.String({ minLength: 1, maxLength: 100 });

export const Session = Type.Object({
  person: Type.Object({
    id: Type.String(),
    name: Type.String(),
    email: Type.String(),
    roles: Type.Array(Type.String()),
  }),
  permissions: Type.Array(Type.String()),
  /** The accesses that the person can choose from; empty if they have only one. */
  accesses: Type.Array(
    Type.Object({
      id: Type.String(),
      roles: Type.Array(Type.String()),
      /** The names of the first merchants. */
      merchants: Type.Array(Type.String()),
      /** Null means all merchants. */
      merchant_count: nullable(Type.Number()),
      current: Type.Boolean(),
    }),
  ),
  /** The merchants that the person sees. */
  scope: Type.Union([Type.Literal('all'), Type.Array(Type.String())]),
  session: Type.Object({
    id: Type.String(),
    method: Type.Union([
      Type.Literal('passkey'),
      Type.Literal('oidc'),
      Type.Literal('sandbox_link'),
    ]),
    created_at: Type.String(),
    expires_at: Type.String(),
  }),
  /** When the re-authentication expires. Until then, actions that require one are allowed. */
  proof_until: nullable(Type.String()),
  sandbox: Type.Boolean(),
  /** Whether the service sends mail at all. */
  sends_mail: Type.Boolean(),
  /** For a merchant's people: the other environment's console, if it is known. */
  other_console_url: nullable(Type.String()),
  is_for_merchants: Type.Boolean(),
});
export type Session = Type.Static<typeof Session>;

export const Done = Type.Object({ done: Type.Boolean() });

/** The ways in which a person can sign in here. */
export const SignInWays = Type.Object({
  oidc: Type.Boolean(),
  sandbox: Type.Boolean(),
  is_for_merchants: Type.Boolean(),
});
export type SignInWays = Type.Static<typeof SignInWays>;

export const LinkBody = Type.Object({ token: Token });

/** POST /api/session/access: the access with which the person continues. */
export const AccessBody = Type.Object({ id: Id });

/** The person that an invitation is for. */
export const Invited = Type.Object({
  email: Type.String(),
  name: Type.String(),
  roles: Type.Array(Type.String()),
  expires_at: Type.String(),
  /** Whether the person must sign in to accept, because they also have access elsewhere. */
  must_sign_in: Type.Boolean(),
});
export type Invited = Type.Static<typeof Invited>;

/** All members pass unchanged. A schema without `additionalProperties` would drop them. */
const allMembers = { additionalProperties: true };
const anyMembers = Type.Object({}, allMembers);

/** For `startRegistration` and `startAuthentication` of @simplewebauthn/browser. */
export const RegistrationOptions = Type.Object({
  options: Type.Unsafe<PublicKeyCredentialCreationOptionsJSON>(anyMembers),
});
export const AuthenticationOptions = Type.Object({
  options: Type.Unsafe<PublicKeyCredentialRequestOptionsJSON>(anyMembers),
});

/**
 * The answers from `startRegistration` and `startAuthentication`. The library checks their other
 * members.
 */
const credential = Type.Object(
  {
    id: Type.String({ maxLength: 2_000 }),
    rawId: Type.String({ maxLength: 2_000 }),
    type: Type.String({ maxLength: 20 }),
    response: Type.Object({ clientDataJSON: Type.String({ maxLength: 4_000 }) }, allMembers),
  },
  allMembers,
);
const RegistrationResponse = Type.Unsafe<RegistrationResponseJSON>(credential);
const AuthenticationResponse = Type.Unsafe<AuthenticationResponseJSON>(credential);

export const RegisterBody = Type.Object({
  token: Token,
  response: RegistrationResponse,
});
export const AuthenticationBody = Type.Object({ response: AuthenticationResponse });
export const AddPasskeyBody = Type.Object({ name: Name, response: RegistrationResponse });

/** The address to which the browser goes to link an account at the issuer. */
export const IssuerAddress = Type.Object({ url: Type.String() });

export const Reauthentication = Type.Object({ proof_until: Type.String() });

export const Passkeys = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      created_at: Type.String(),
      used_at: nullable(Type.String()),
    }),
  ),
  /** Whether an account at the issuer is linked to the person; null if there is no issuer. */
  issuer: nullable(Type.Object({ is_tied: Type.Boolean() })),
});
export type Passkeys = Type.Static<typeof Passkeys>;

export const Sessions = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Type.String(),
      method: Type.String(),
      address: Type.String(),
      user_agent: Type.String(),
      created_at: Type.String(),
      seen_at: Type.String(),
      /** Whether it is the session of this request. */
      current: Type.Boolean(),
    }),
  ),
});
export type Sessions = Type.Static<typeof Sessions>;
