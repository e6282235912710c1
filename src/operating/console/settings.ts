import type { OidcSettings } from '#operating/people/oidc.ts';

/** Where the console is, and who besides us may say who a person is. */
export type ConsoleSettings = {
  /** Its origin, without a slash at the end. */
  url: string;
  /** Whether one-time links of the command line sign in: in sandboxes on this machine only. */
  allowsSignInLinks: boolean;
  oidc: OidcSettings | null;
};
