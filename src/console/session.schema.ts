import Type from 'typebox';

const Nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const Session = Type.Object({
  person: Type.Object({
    id: Type.String(),
    name: Type.String(),
    email: Type.String(),
    roles: Type.Array(Type.String()),
  }),
  permissions: Type.Array(Type.String()),
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
  /** Until when acts that need a fresh proof are allowed without a new one. */
  proof_until: Nullable(Type.String()),
  sandbox: Type.Boolean(),
});
export type Session = Type.Static<typeof Session>;

export const Done = Type.Object({ done: Type.Boolean() });
