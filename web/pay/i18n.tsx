import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { splitText } from '#platform/shared/words/fill-in.ts';
import type { PageKey } from '#platform/shared/words/words.ts';
import type { I18n } from './words.ts';

/** The language of the page, for every component. */
export const I18nContext = createContext<I18n | null>(null);

export function useI18n(): I18n {
  const i18n = useContext(I18nContext);
  if (i18n === null) throw new Error('a component is outside of I18nContext');
  return i18n;
}

/** A text whose values are elements: a merchant's name keeps its own writing direction. */
export function Text({ of: key, ...values }: { of: PageKey } & Record<string, ComponentChildren>) {
  const { words } = useI18n();
  return (
    <>
      {splitText(words[key]).map((part) =>
        typeof part === 'string' ? part : (values[part.name] ?? null),
      )}
    </>
  );
}
