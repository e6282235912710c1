// The languages that shoppers can choose.

export const languages = ['en', 'af', 'zu'] as const;
export type Language = (typeof languages)[number];

/** Each language's name in that language. */
export const languageNames: Record<Language, string> = {
  en: 'English',
  af: 'Afrikaans',
  zu: 'isiZulu',
};

export function isLanguage(value: unknown): value is Language {
  return languages.includes(value as Language);
}

/**
 * The language that a browser's Accept-Language header prefers; English if it lists none of ours.
 */
export function chooseLanguage(acceptLanguage: string | undefined): Language {
  const wanted = (acceptLanguage ?? '')
    .slice(0, 500)
    .split(',')
    .map((part) => {
      const [tag = '', ...parameters] = part
        .trim()
        .toLowerCase()
        .split(/\s*;\s*/);
      const quality = parameters.find((one) => one.startsWith('q='))?.slice(2) ?? '1';
      return { language: tag.split('-')[0], quality: Number(quality) || 0 };
    })
    .filter(({ language, quality }) => isLanguage(language) && quality > 0)
    // The sort is stable: among equal languages the first stays first.
    .sort((one, other) => other.quality - one.quality);
  return (wanted[0]?.language as Language | undefined) ?? 'en';
}
