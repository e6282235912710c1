// This is separate from the catalogues, so that a page can use it without loading every language.

export function fillIn(text: string, values: Record<string, string | number> = {}): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));
}

/** `Pay {amount} now` → `Pay `, the place of `amount`, ` now`. */
export function splitText(text: string): (string | { name: string })[] {
  return text
    .split(/\{(\w+)\}/)
    .map((part, index) => (index % 2 === 1 ? { name: part } : part))
    .filter((part) => part !== '');
}
