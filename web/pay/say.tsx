import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { splitText } from '#platform/shared/words/fill-in.ts';
import type { PageKey } from '#platform/shared/words/words.ts';
import type { Say } from './words.ts';

/** The language of the page, for every component. */
export const Speaking = createContext<Say | null>(null);

export function useSay(): Say {
  const say = useContext(Speaking);
  if (say === null) throw new Error('a component is outside of Speaking');
  return say;
}

/** A text whose values are elements: a merchant's name keeps its own direction of writing. */
export function Text({ say, ...values }: { say: PageKey } & Record<string, ComponentChildren>) {
  const { words } = useSay();
  return (
    <>
      {splitText(words[say]).map((part) =>
        typeof part === 'string' ? part : (values[part.name] ?? null),
      )}
    </>
  );
}
