// Records the requests and answers of a load with faults, or judges such a history.
//
//   npm run record -- --seconds 60 --out FILE
//   npm run record -- --check FILE

import fs from 'node:fs';
import { parseArgs } from 'node:util';
import { checkHistory } from './check.ts';
import { readHistory } from './history.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    out: { type: 'string' },
    check: { type: 'string' },
  },
});
const seconds = Number(values.seconds);
if ((values.out === undefined) === (values.check === undefined) || !(seconds > 0)) {
  process.stderr.write('Usage: npm run record -- --seconds N --out FILE, or --check FILE\n');
  process.exit(2);
}

if (values.out !== undefined) {
  const out = fs.openSync(values.out, 'w');
  // The test support reads the address of a server when it is loaded, though none is used here.
  process.env.TEST_DATABASE_URL ??= 'postgres://127.0.0.1/none';
  process.env.NODE_ENV = 'test';
  const { record } = await import('./record.ts');
  await record({
    seconds,
    random: Math.random,
    write: (operation) => void fs.writeSync(out, `${JSON.stringify(operation)}\n`),
    say: (line) => void process.stderr.write(`${line}\n`),
  });
  fs.closeSync(out);
}
const verdict = checkHistory(readHistory(values.out ?? values.check ?? ''));
const { operations, checkouts, refunds, problems, undecided } = verdict;
for (const line of [...problems, ...undecided]) process.stdout.write(`- ${line}\n`);
process.stdout.write(
  `${operations} operations on ${checkouts} checkouts with ${refunds} refunds: ${problems.length} problems, ${undecided.length} undecided.\n`,
);
process.exitCode = problems.length + undecided.length > 0 ? 1 : 0;
