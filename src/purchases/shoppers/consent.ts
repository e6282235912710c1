import type { FieldError } from '#platform/http/validation.ts';
import { languages } from '#platform/shared/language.ts';
import { consentVersion } from '#platform/shared/words/consent-version.ts';
import type { Consent } from '#purchases/payments/payment-attempt.ts';

/**
 * Checks that a consent has our wording in one of our languages, and the payments that the page
 * showed.
 */
export function explainConsent(
  consent: Consent | null,
  shown: Consent['payments'][],
  problem: string,
): FieldError[] {
  const versions = languages.map(consentVersion);
  if (!consent || !versions.includes(consent.version)) {
    return [{ path: 'consent', problem: `must be given in the version ${versions.join(' or ')}` }];
  }
  const agreed = JSON.stringify(onlyConsent(consent).payments);
  const isShown = shown.some((payments) => JSON.stringify(payments) === agreed);
  return isShown ? [] : [{ path: 'consent.payments', problem }];
}

/**
 * Keeps only the members that we know, in our order. Other members that a page sends are not
 * stored.
 */
export function onlyConsent({ version, payments }: Consent): Consent {
  return {
    version,
    payments: payments.map(({ number, amount, due_on }) => ({ number, amount, due_on })),
  };
}
