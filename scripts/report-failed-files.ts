import type { TestEvent } from 'node:test/reporters';

/** A reporter for Node's test runner that writes the path of each file with a failed test. */
export default async function* reportFailedFiles(
  events: AsyncIterable<TestEvent>,
): AsyncGenerator<string> {
  const reported = new Set<string>();
  for await (const { type, data } of events) {
    // A failed test fails its suite, and the outermost one is in the file itself.
    if (type !== 'test:fail' || data.nesting > 0) continue;
    // A file that cannot be run is reported as a test that has the file's path for a name.
    const file = data.file ?? data.name;
    if (!reported.has(file)) yield `${file}\n`;
    reported.add(file);
  }
}
