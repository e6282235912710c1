import type { OidcSettings } from '#operating/people/oidc.ts';

/** Where the console is, and which issuer may prove who a person is. */
export type ConsoleSettings = {
  /** The console's origin, without a slash at the end. */
  url: string;
  /**
   * Whether one-time links of the command line sign a person in. True only in sandboxes on this
   * machine.
   */
  allowsSignInLinks: boolean;
  oidc: OidcSettings | null;
};
