// Keys of a single character get in the way of people who speak to their computer, so a person can
// turn them off in this browser.

const storedAs = 'tranche-keys';

export const areKeysOn = () => window.localStorage.getItem(storedAs) !== 'off';

export function setKeysOn(on: boolean): void {
  if (on) window.localStorage.removeItem(storedAs);
  else window.localStorage.setItem(storedAs, 'off');
}

/** Whether a key press is for the console, and not for a field, a dialog or the browser. */
export function isForKeys(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return !(
    event.metaKey ||
    event.ctrlKey ||
    event.altKey ||
    target?.matches('input:not([type="checkbox"]), textarea, select, [contenteditable]') ||
    document.querySelector('[role="dialog"]') ||
    !areKeysOn()
  );
}
