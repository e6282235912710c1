import type { Language } from '../language.ts';

/**
 * Names the wording that the shopper agreed to, in their language. Change the date whenever the
 * sentence changes.
 */
export function consentVersion(language: Language): string {
  return language === 'en' ? '2026-11' : `2026-11-${language}`;
}
