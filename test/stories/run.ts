// Plays stories on a PostgreSQL server of their own, and shrinks those that fail.
//
//   npm run stories -- --count 10000            from the seed of today
//   npm run stories -- --count 1 --seed 17      one of them again
//   npm run stories -- --replay FILE            a shrunk story from a file
//   npm run stories -- … --json                 for programs
//
// A shrunk failure is kept in `test/stories/cases/`, and `npm test` plays it from then on.

import { parseArgs } from 'node:util';
import { startTestServer } from '../../scripts/test-server.ts';

const { values } = parseArgs({
  options: {
    count: { type: 'string' },
    seed: { type: 'string' },
    replay: { type: 'string' },
    json: { type: 'boolean' },
  },
});
const server = await startTestServer();
process.env.TEST_DATABASE_URL = server.url;
process.env.NODE_ENV = 'test';
let isDone = false;
try {
  // The test support reads the address of the server when it is loaded.
  const { tellStories } = await import('./tell.ts');
  const told = await tellStories({
    count: Number(values.count ?? 1),
    seed: values.seed === undefined ? null : Number(values.seed),
    replay: values.replay ?? null,
    print: (text) => void process.stderr.write(`${text}\n`),
  });
  const seconds = await server.stop();
  isDone = true;
  const answer = { ...told, cpu_seconds: Math.round(seconds * 10) / 10 };
  const { stories, failures, faults } = told;
  process.stdout.write(
    values.json
      ? `${JSON.stringify(answer)}\n`
      : `${stories} stories, ${failures} failures, ${faults} faults, ${answer.cpu_seconds} s of processor time.\n`,
  );
  process.exitCode = failures > 0 || told.unseen.length > 0 ? 1 : 0;
} finally {
  if (!isDone) await server.stop();
}
