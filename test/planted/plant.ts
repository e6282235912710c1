import assert from 'node:assert/strict';
import type { Fault } from './faults.ts';

/** Puts a fault into the text of a file, and returns it. */
export function plant(text: string, { name, file, from, to }: Fault): string {
  const places = text.split(from).length - 1;
  assert.equal(
    places,
    1,
    `"${name}" must find its text once in ${file}, and found it ${places} times`,
  );
  return text.replace(from, () => to);
}
