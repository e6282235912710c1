import { useState } from 'react';

/** A text that a person types: the text, the props of its input, and a function that sets it. */
export function useText(initial: string | (() => string)) {
  const [text, setText] = useState(initial);
  const onChange = (event: { currentTarget: { value: string } }) =>
    setText(event.currentTarget.value);
  return [text, { value: text, onChange }, setText] as const;
}
