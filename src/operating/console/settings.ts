import type { OidcSettings } from '#operating/people/oidc.ts';

/** The addresses of the console, and the issuer that may sign people in. */
export type ConsoleSettings = {
  /** The console's origin, without a slash at the end. */
  url: string;
  /**
   * The origin of the merchants' own console. Null if merchants' people use the staff's console.
   */
  merchantUrl: string | null;
  /**
   * The origin at which merchants' people sign in to the other environment (sandbox or production).
   */
  otherUrl: string | null;
  /** Whether only merchants' people can sign in here. */
  isForMerchants: boolean;
  /**
   * Whether one-time links from the command line sign a person in. True only in sandboxes on this
   * machine.
   */
  allowsSignInLinks: boolean;
  oidc: OidcSettings | null;
  /** Present only in a sandbox that `tranche sandbox` runs. */
  story?: StoryControl;
};

/** Plays a story of twelve weeks, so that a new sandbox has something to show. */
export type StoryControl = {
  isPlaying(): boolean;
  /** Returns at once. The audit records the operator's name. */
  play(operator: string): void;
};

/**
 * The settings for the console at the merchants' origin. Staff cannot sign in there, so it has
 * neither the staff's issuer nor the demo administrator's links.
 */
export const merchantConsole = (
  url: string,
  { otherUrl }: Pick<ConsoleSettings, 'otherUrl'>,
): ConsoleSettings => ({
  url,
  merchantUrl: url,
  otherUrl,
  isForMerchants: true,
  allowsSignInLinks: false,
  oidc: null,
});
