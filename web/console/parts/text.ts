import { useEffect, useRef, useState } from 'react';

// When a session ends, the sign-in page replaces the console, and nothing that was read stays. This
// tab keeps in memory what the person has typed, until they sign in again.

const kept = new Map<string, string>();
let isEnding = false;

/** Call this when the session has ended: from now on, fields that disappear keep their texts. */
export function keepTexts(): void {
  isEnding = true;
}

/** Call this when the person has signed in again: fields then begin with their kept texts. */
export function returnTexts(): void {
  isEnding = false;
}

/**
 * A text that a person types: the text, the props of its input, and a function that sets it. With
 * `name`, which is unique on its page, the text survives the end of the session.
 */
export function useText(initial: string | (() => string), name?: string) {
  const key = name && `${window.location.pathname} ${name}`;
  const [text, setText] = useState(() => {
    const begun = key && kept.get(key);
    return begun || (typeof initial === 'string' ? initial : initial());
  });
  useKept(key, text);
  const onChange = (event: { currentTarget: { value: string } }) =>
    setText(event.currentTarget.value);
  return [text, { value: text, onChange }, setText] as const;
}

function useKept(key: string | undefined, text: string): void {
  const last = useRef(text);
  last.current = text;
  useEffect(() => {
    if (key === undefined) return;
    return () => {
      if (isEnding) kept.set(key, last.current);
      else kept.delete(key);
    };
  }, [key]);
}
