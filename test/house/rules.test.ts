import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { findAsvsGaps } from '../../scripts/check-asvs.ts';
import { findConsoleImports, findMantineVersions } from '../../scripts/check-console.ts';
import {
  findBadCitations,
  findDeadPaths,
  findLongLines,
  findOneWayLinks,
  findUndocumentedSettings,
  findUnlistedRecords,
  findUnlistedRooms,
  findWrongInvariants,
} from '../../scripts/check-documents.ts';
import { findProblems } from '../../scripts/check-house.ts';
import { findLongCode } from '../../scripts/check-lengths.ts';
import { findLockGaps } from '../../scripts/check-lock.ts';
import { findForeignWrites, findRoomCycles, findWrongOrder } from '../../scripts/check-rooms.ts';
import { findAllColumns } from '../../scripts/check-statements.ts';
import { findGatewayNames, findWrongWords } from '../../scripts/check-words.ts';
import { isLong } from '../support/service.ts';

// `npm run check` shows this before each merge.
test('the repository keeps its own rules', {
  skip: !isLong && 'only in npm run test:long',
}, () => {
  assert.deepEqual(findProblems(path.resolve(import.meta.dirname, '../..')), []);
});

test('a prepared statement names its columns', (t) => {
  const root = plant(t, {
    'src/a/a.sql.ts': "client.query({ name: 'a', text: `select * from a` });",
    'src/a/b.sql.ts':
      'client.query({\n  name: `b-1`,\n  timeout: 1,\n  text: `update b set x = 1\n returning b.*`,\n});',
    'src/a/d.sql.ts':
      "client.query({ name: 'd', text: `insert into d select i.* from (select count(*), 2 * 3) i` });",
  });
  assert.deepEqual(
    findAllColumns(root).map((problem) => problem.split(':')[0]),
    ['src/a/a.sql.ts', 'src/a/b.sql.ts'],
  );
});

test('a function has at most 70 lines, a component of a page 120, and a file 500', (t) => {
  const lines = (count: number) => '  // é {\n'.repeat(count);
  const root = plant(t, {
    'src/a.ts': `function most() {\n${lines(68)}}\nconst more = () => {\n${lines(69)}};\n`,
    'src/nested.ts': `function outer() {\n  return () => {\n${lines(67)}  };\n}\n`,
    'src/class.ts': `class A {\n  #x = [\n${lines(90)}];\n  #y() {\n${lines(90)}}\n}\n`,
    'src/table.ts': `const a = { b: { run() {\n${lines(90)}} } };\n`,
    'src/long.ts': lines(501),
    'src/a.test.ts': `function a() {\n${lines(600)}}\n`,
    'web/a.tsx': [
      `const Most = () => (\n  <p>\n${'<br />\n'.repeat(116)}  </p>\n);`,
      `function More() {\n${lines(117)}  if (a) return null;\n  return b ? <p /> : null;\n}`,
      `function hook() {\n${lines(117)}  return () => <p />;\n}`,
      `function Page() {\n  const a = () => {\n${lines(80)}  };\n  return <p />;\n}\n`,
    ].join('\n'),
  });
  assert.deepEqual(findLongCode(root, []), [
    'src/a.ts more has 71 lines, more than 70',
    'src/class.ts y has 92 lines, more than 70',
    'src/long.ts has 501 lines, more than 500',
    'src/nested.ts outer has 71 lines, more than 70',
    'src/table.ts run has 92 lines, more than 70',
    'web/a.tsx More has 121 lines, more than 120',
    'web/a.tsx hook has 120 lines, more than 70',
    'web/a.tsx a has 82 lines, more than 70',
  ]);
});

test('the list of long functions names only those that are long', (t) => {
  const root = plant(t, { 'src/a.ts': `function a() {\n${'\n'.repeat(80)}}\n` });
  assert.deepEqual(findLongCode(root, ['src/a.ts a', 'src/a.ts b']), [
    'scripts/check-lengths.ts: src/a.ts b is not too long; remove it from the list',
  ]);
});

test('two rooms that import each other are a cycle', (t) => {
  const root = plant(t, {
    'src/purchases/refunds/refund.ts': `import { amount } from '../payments/payment.ts';`,
    'src/purchases/payments/payment.ts': `import {\n  reason,\n} from '#purchases/refunds/reason.ts';`,
    'src/purchases/refunds/reason.ts': '',
  });
  assert.deepEqual(findRoomCycles(root), [
    'room cycle: purchases/payments → purchases/refunds ' +
      '(purchases/payments/payment.ts imports purchases/refunds/reason.ts), ' +
      'purchases/refunds → purchases/payments ' +
      '(purchases/refunds/refund.ts imports purchases/payments/payment.ts)',
  ]);
});

test('a group imports only from itself and from the groups below it; for the platform that includes types', (t) => {
  const root = plant(t, {
    'src/platform/shared/clock.ts': `import { find } from '#purchases/refunds/refund.ts';`,
    'src/platform/shared/money.ts': `import type { Refund } from '#purchases/refunds/refund.ts';`,
    'src/purchases/refunds/refund.ts': `import { now } from '#platform/shared/clock.ts';`,
    'src/record/notes/note.ts': `import type { Refund } from '#purchases/refunds/refund.ts';`,
    'src/operating/console/server.ts': `import { start } from '../../main.ts';`,
    'src/main.ts': `import { build } from './operating/console/server.ts';`,
    'src/attic/a.ts': '',
  });
  assert.deepEqual(findWrongOrder(root), [
    'group order: attic/a.ts is in no group',
    'group order: operating/console/server.ts imports main.ts, but the composition root stands above it',
    'group order: platform/shared/clock.ts imports purchases/refunds/refund.ts, but purchases stands above it',
    'group order: platform/shared/money.ts imports purchases/refunds/refund.ts, but purchases stands above it',
  ]);
});

test('a cycle through a third room, a re-export or a delayed import is found', (t) => {
  const root = plant(t, {
    'src/a/a.ts': `export { b } from '../b/b.ts';`,
    'src/b/b.ts': `const c = await import('../c/c.ts');`,
    'src/c/c.ts': `import '../a/a.ts';`,
  });
  assert.equal(findRoomCycles(root).length, 1);
});

test('imports of types make no cycle, and a test may import what it likes', (t) => {
  const root = plant(t, {
    'src/a/a.ts': `import { b } from '../b/b.ts';`,
    'src/b/b.ts': `import type { A } from '../a/a.ts';\nimport { type B } from '../a/a.ts';`,
    'src/b/b.test.ts': `import { a } from '../a/a.ts';`,
  });
  assert.deepEqual(findRoomCycles(root), []);
});

test('delivery is a room of its own within callbacks', (t) => {
  const root = plant(t, {
    'src/purchases/callbacks/queue.ts': `import { deliver } from './delivery/deliver.ts';`,
    'src/purchases/callbacks/delivery/deliver.ts': `import { status } from '../callback.ts';`,
  });
  assert.equal(findRoomCycles(root).length, 1);
});

test('only the slice with the type of a table writes it, and erasing a shopper may', (t) => {
  const merged = (table: string) =>
    `declare module '#platform/database/tables.ts' {\n  interface Tables {\n    ${table}: {\n`;
  const root = plant(t, {
    'src/platform/database/tables.ts': 'export interface Tables {\n  territories: {\n',
    'src/purchases/checkouts/checkout.tables.ts': merged('checkouts'),
    'src/merchants/integrations/integration.tables.ts': merged('integrations'),
    'src/purchases/checkouts/checkout.sql.ts': 'sql`insert into checkouts values (1)`',
    'src/purchases/checkouts/more/some.sql.ts': 'sql`update checkouts set x = 1`',
    'src/purchases/shoppers/erasure.sql.ts': 'sql`update checkouts set x = 1`',
    'src/purchases/shoppers/shopper.sql.ts': 'sql`update checkouts set x = 1`',
    'src/purchases/refunds/refund.sql.ts': 'sql`with c as (update checkouts set x = 1) select 1`',
    'src/purchases/legacy/legacy.sql.ts': `db.deleteFrom('checkouts')`,
    'src/merchants/merchant.sql.ts': `sql\`insert into territories values (1)\`; db.updateTable('integrations')`,
    'src/purchases/payments/payment.sql.ts':
      '// Does not update checkouts.\nsql`select 1 from checkouts`',
  });
  assert.deepEqual(findForeignWrites(root), [
    'foreign write: merchants/merchant.sql.ts writes territories, which belongs to platform/database',
    'foreign write: merchants/merchant.sql.ts writes integrations, which belongs to merchants/integrations',
    'foreign write: purchases/legacy/legacy.sql.ts writes checkouts, which belongs to purchases/checkouts',
    'foreign write: purchases/refunds/refund.sql.ts writes checkouts, which belongs to purchases/checkouts',
    'foreign write: purchases/shoppers/shopper.sql.ts writes checkouts, which belongs to purchases/checkouts',
  ]);
});

test('no slice calls the writing SQL of another', (t) => {
  const root = plant(t, {
    'src/purchases/refunds/start.ts': `import { findIt, moveIt } from '../instalments/instalment.sql.ts';`,
    'src/purchases/refunds/own.ts': `import { moveRefund } from './refund.sql.ts';`,
    'src/purchases/refunds/due.ts': `import { claimDue } from '#platform/database/due-work.sql.ts';`,
  });
  assert.deepEqual(findForeignWrites(root), [
    'foreign write: purchases/refunds/start.ts imports moveIt of purchases/instalments/instalment.sql.ts; call a use case instead',
  ]);
});

test('a cited decision has a record', (t) => {
  const root = plant(t, {
    'docs/decisions/0020-times.md': '# 0020 Times\n',
    'src/a.ts':
      '// Decision 0020, and decisions 0020 and 0021, of 1500 cents.\n// See docs/decisions/0027-x.md.\n',
    'docs/decisions/0021-more.md': '# 0021 More\n\nSee (0028), [0029](0029-y.md).\n',
  });
  assert.deepEqual(findBadCitations(root), [
    'docs/decisions/0021-more.md:3 cites decision 0028: no such record',
    'docs/decisions/0021-more.md:3 cites decision 0029: no such record',
    'src/a.ts:2 cites decision 0027: no such record',
  ]);
});

test('a number of another list is not a citation', (t) => {
  const number = ['D', '17'].join('');
  const root = plant(t, { 'src/a.ts': `// As ${number} wants.\nconst id = 'x${number}';\n` });
  assert.deepEqual(findBadCitations(root), [
    `src/a.ts:1 cites ${number}: cite the record ("decision 0011")`,
  ]);
});

test('the list of records has all of them, by number and under their titles', (t) => {
  const root = plant(t, {
    'docs/decisions/0001-a.md': '# 0001 A\n',
    'docs/decisions/0002-b.md': '# 0002 B\n',
    'docs/decisions/0005-c.md': '# 0005 C\n',
    'docs/decisions/README.md': '- [0002 Bee](0002-b.md)\n- [0001 A](0001-a.md)\n',
  });
  assert.deepEqual(findUnlistedRecords(root), [
    'docs/decisions/README.md does not list the records in the order of their numbers',
    'docs/decisions/README.md lists 0002-b.md under another title than its own',
    'docs/decisions/README.md does not list 0005-c.md',
    'docs/decisions/README.md lists 0005-c.md under another title than its own',
  ]);
});

test('a record that amends another is named there, and its head says nothing else', (t) => {
  const root = plant(t, {
    'docs/decisions/0001-a.md': '# 0001 A\n\nAmended by: 0002\n\n## Context\n',
    'docs/decisions/0002-b.md': '# 0002 B\n\nAmends: 0001, 0005\n\n## Context\n',
    'docs/decisions/0005-c.md': '# 0005 C\n\nAmended by: 0007\n\n## Context\n',
    'docs/decisions/0007-d.md': '# 0007 D\n\nReplaces in 0005 how it ends.\n\n## Context\n',
  });
  assert.deepEqual(findOneWayLinks(root), [
    'docs/decisions/0002-b.md amends 0005, which does not say "Amended by: 0002"',
    'docs/decisions/0005-c.md is amended by 0007, which does not say "Amends: 0005"',
    'docs/decisions/0007-d.md: before the first heading write only "Amends:" or "Amended by:" with numbers',
  ]);
});

test('no line of Markdown has more than 120 columns, outside of tables, links and answers', (t) => {
  const long = 'word '.repeat(24);
  const root = plant(t, {
    'README.md': [
      `${long}x`,
      `${long}`,
      `| ${long} |`,
      `${long.slice(0, 100)} [here](https://example.com/${'x'.repeat(60)})`,
      '```json',
      `"${long}"`,
      '```',
      '```sh',
      `${long}y`,
      '```',
    ].join('\n'),
  });
  assert.deepEqual(findLongLines(root), [
    'README.md:1 has 121 columns',
    'README.md:9 has 121 columns',
  ]);
});

test('a document names files, links and headings that exist', (t) => {
  const root = plant(t, {
    'src/a.ts': '',
    'README.md':
      'In `src/a.ts`, `src/*.ts` and `src/b.ts`; see [this](src/a.ts) and [that](c.md#x).\n',
    'src/README.md': 'See `a.ts`, `e.ts` and `e.note`.\n',
    'SECURITY.md':
      '# A title\n\nSee [here](#a-title), [it](SECURITY.md#a-title), [no](#another).\n',
  });
  assert.deepEqual(findDeadPaths(root), [
    'README.md:1 names src/b.ts, which does not exist',
    'README.md:1 links to c.md, which does not exist',
    'SECURITY.md:3 links to #another, which is not a heading there',
    'src/README.md:1 names e.ts, which is not in its folder',
  ]);
});

test('every setting is documented with its default, and every documented one is read', (t) => {
  const root = plant(t, {
    'src/config.ts': `text('PORT'); text('HOST')`,
    'src/config/keys.ts': `text('SECRET')`,
    'src/other.ts': 'const level = process.env.LOG_LEVEL;',
    'docs/operators/settings.md': [
      '| variable | default | meaning |',
      '| --- | --- | --- |',
      '| `PORT` | `3000` | the port |',
      '| `HOST` | `127.0.0.1` | the address |',
      '| `COLOUR` | none | gone |',
    ].join('\n'),
  });
  const readConfig = (env: Record<string, string>) => ({
    port: env.PORT ?? '3000',
    host: env.HOST ?? 'localhost',
  });
  assert.deepEqual(findUndocumentedSettings(root, readConfig), [
    'src/config.ts reads SECRET, which docs/operators/settings.md does not have',
    'docs/operators/settings.md: 127.0.0.1 is not the default of HOST',
    'docs/operators/settings.md has COLOUR, which src/config.ts does not read',
    'src/other.ts:1 reads the environment; src/config.ts is the only reader',
  ]);
});

test('ARCHITECTURE lists the groups and rooms that there are', (t) => {
  const root = plant(t, {
    'src/main.ts': '',
    'src/cli/main.ts': '',
    'src/purchases/refunds/refund.ts': '',
    'src/purchases/payments/payment.ts': '',
    'ARCHITECTURE.md':
      '## Rooms\n\n| group | rooms |\n| --- | --- |\n| `main.ts` | |\n| `purchases/` | `refunds`, `attic` |\n',
  });
  assert.deepEqual(findUnlistedRooms(root), [
    'ARCHITECTURE.md does not list the room cli/',
    'ARCHITECTURE.md does not list the room purchases/payments/',
    'ARCHITECTURE.md lists the room purchases/attic/, which does not exist',
  ]);
});

test('a README lists every invariant, and shows those that no SQL checks', (t) => {
  const readme = 'src/checks/invariants/README.md';
  const root = plant(t, {
    'src/checks/invariants.ts': `const all = [{\n  name: 'M1',\n}, {\n  name: 'M2',\n}];`,
    [readme]: [
      '| | invariant | rests on | shown by |',
      '| M1 | a sum | a lock | |',
      '| K1 | a promise | a commit | `test/kills.test.ts` |',
      '| K2 | a hope | luck | prayer |',
    ].join('\n'),
  });
  assert.deepEqual(findWrongInvariants(root), [
    `${readme} lists K2: no statement checks it and no test is named`,
    `${readme} does not list the invariant M2`,
  ]);
});

test('the assessment by ASVS has each requirement once, and names files and tests that exist', (t) => {
  const row = (...cells: string[]) => `| ${cells.join(' | ')} |`;
  const root = plant(t, {
    'scripts/asvs-5.0.0.json': JSON.stringify({ '1.1.1': 1, '1.1.2': 2, '1.1.3': 1, '1.1.4': 2 }),
    'src/a.ts': '',
    'docs/a.md': '',
    'test/a.test.ts': "test('holds', () => {});",
    'docs/operators/asvs.md': [
      '5 are met, 1 are not ours.',
      row('1.1.1', '1', 'a', 'met', '`src/a.ts`; `test/a.test.ts` "holds"'),
      row('1.1.1', '1', 'a', 'met', '`docs/a.md`'),
      row('1.1.2', '1', 'a', 'met', '`src/a.ts`'),
      row('1.1.3', '1', 'a', 'met', '`src/b.ts`; `test/a.test.ts` "breaks"'),
      row('1.1.5', '1', 'a', 'not ours', 'We have no such part.'),
      row('1.1.6', '1', 'a', 'not ours', ''),
      row('1.1.7', '1', 'a', 'open', 'A part.'),
    ].join('\n'),
  });
  const document = 'docs/operators/asvs.md';
  assert.deepEqual(findAsvsGaps(root), [
    `${document}: 1.1.1 is listed twice`,
    `${document}: 1.1.2 has level 2`,
    `${document}: 1.1.2 is met, but no test or document shows it`,
    `${document}: 1.1.3 names src/b.ts, which does not exist`,
    `${document}: 1.1.3 names "breaks", which is not a test in test/a.test.ts`,
    `${document}: 1.1.5 is not a requirement of levels 1 and 2`,
    `${document}: 1.1.6 is not a requirement of levels 1 and 2`,
    `${document}: 1.1.6 has an empty cell`,
    `${document}: 1.1.7 is not a requirement of levels 1 and 2`,
    `${document}: 1.1.7 is "open": write met, not ours`,
    `${document} does not have 1.1.4`,
    `${document} must say: 4 are met, 2 are not ours.`,
  ]);
});

test('the lock file is complete for every system that we support', (t) => {
  const binary = (os: string, cpu: string) => ({ version: '1.0.0', os: [os], cpu: [cpu] });
  const root = plant(t, {
    'package-lock.json': JSON.stringify({
      packages: {
        '': { dependencies: { bundler: '1.0.0' } },
        'node_modules/bundler': {
          version: '1.0.0',
          resolved: 'https://registry.example/bundler.tgz',
          dependencies: { nested: '1.0.0', absent: '1.0.0' },
          optionalDependencies: {
            'bundler-linux-x64': '1.0.0',
            'bundler-linux-arm64': '1.0.0',
            'bundler-darwin-arm64': '1.0.0',
            'bundler-darwin-x64': '1.0.0',
            'bundler-win32-arm64': '1.0.0',
          },
        },
        'node_modules/bundler/node_modules/nested': { version: '1.0.0' },
        'node_modules/bundler-linux-x64': binary('linux', 'x64'),
        'node_modules/bundler-darwin-arm64': binary('darwin', 'arm64'),
        'node_modules/bundler-darwin-x64': binary('darwin', 'x64'),
        'node_modules/bundler-win32-arm64': binary('win32', 'arm64'),
      },
    }),
  });
  assert.deepEqual(findLockGaps(root), [
    'package-lock.json: bundler names a registry; .npmrc leaves it out',
    'package-lock.json: absent, which bundler depends on, is missing',
    'package-lock.json: bundler-linux-arm64, which bundler depends on, is missing',
    'package-lock.json: bundler has no binary for linux-arm64',
    'package-lock.json: bundler has no binary for win32-x64',
  ]);
});

test('the console imports from the service only types and what both sides share', (t) => {
  const root = plant(t, {
    'web/console/pages/a.tsx': [
      `import type { A } from '#operating/console/a.schema.ts';`,
      `import type {\n  B,\n} from '#operating/console/a.schema.ts';`,
      `import { money } from '#platform/shared/money.ts';`,
      `import { write } from '../../../src/platform/shared/words.ts';`,
      `import { part } from '../parts/part.tsx';`,
    ].join('\n'),
    'web/console/b.ts': [
      `import {\n  A,\n} from '#operating/console/a.schema.ts';`,
      `export * from '#purchases/refunds/refund.ts';`,
      `const c = await import('#operating/bulk-actions/bulk-action.ts');`,
      `import '#main.ts';`,
    ].join('\n'),
  });
  assert.deepEqual(
    findConsoleImports(root),
    [
      'operating/console/a.schema',
      'purchases/refunds/refund',
      'operating/bulk-actions/bulk-action',
      'main',
    ].map(
      (name) => `web/console/b.ts imports src/${name}.ts: import only its types ("import type")`,
    ),
  );
});

test('the packages of Mantine have one exact version', (t) => {
  const root = plant(t, {
    'package.json': JSON.stringify({
      dependencies: { '@mantine/form': '^9.7.3', fastify: '^5.0.0' },
      devDependencies: {
        '@mantine/dates': '9.7.2',
        '@mantine/core': '9.7.3',
        '@mantine/hooks': '9.7.3',
      },
    }),
  });
  assert.deepEqual(findMantineVersions(root), [
    'package.json: @mantine/form ^9.7.3 is not exact',
    'package.json: @mantine/dates is 9.7.2, core is 9.7.3',
  ]);
});

test('only an adapter and its card form name a gateway', (t) => {
  const root = plant(t, {
    'web/pay/form.tsx': 'const a = 1;\nwindow.Stripe(key);',
    'src/config.ts': "text('HYPERSWITCH_API_KEY');",
    'src/gateway/stripe/api.ts': "import Stripe from 'stripe';",
    'web/card-forms/stripe.ts': 'window.Stripe(key);',
  });
  assert.deepEqual(findGatewayNames(root), [
    'src/config.ts:1 names a gateway ("HYPERSWITCH"), which only adapters do',
    'web/pay/form.tsx:2 names a gateway ("Stripe"), which only adapters do',
  ]);
});

test('comments and names use the words of CONTRIBUTING, and a comment begins with its subject', (t) => {
  const root = plant(t, {
    'src/wrong.ts': [
      '/** Of a refund, the amount. */',
      '// What the gateway said.',
      '/**',
      ' * When it is due. It may be',
      ' * released; null: never.',
      ' */',
      'const text = 1; // Nobody reads this check: it is behind code.',
      '    {/* Every act of an operator. */}',
    ].join('\n'),
    'migrations/0001_wrong.sql': '-- Whoever pays\n-- tries again.',
    'web/wrong.css': '/* The row is in hand. */\n.dialog-acts { color: red }',
    'src/restore.ts': '// It adopts a payment.\n\n// Each mark is a heartbeat.',
    'src/names.ts':
      'const seenAct = { beat_at, adoptLost, RunFinding, lanes, walk, tries, says, key_mark };',
    'test/api-acts.test.ts': '',
    'src/right.ts': [
      '// Returns what the gateway said. The account is `nobody`, and "in hand" is a quotation.',
      "const help = 'What nobody knows';",
      '// A route that acts tries each card of the shopper.',
      "markSent(heartbeat, 'act', `finding`, exact, /byte order mark/);",
    ].join('\n'),
    'sdk/src/api.ts': '/** What your bank statement shows. */',
  });
  assert.deepEqual(
    findWrongWords(root).map((problem) => problem.split(/ in a comment|: /)[0]),
    [
      'migrations/0001_wrong.sql:1 says "Whoever"',
      'migrations/0001_wrong.sql:1 says "tries again"',
      ...['seenAct', 'beat_at', 'adoptLost', 'RunFinding', 'lanes', 'walk', 'tries'].map(
        (name) => `src/names.ts has the name "${name}"`,
      ),
      'src/names.ts has the name "says"',
      'src/names.ts has the name "key_mark"',
      'src/restore.ts:1 says "adopts"',
      'src/restore.ts:3 says "Each mark"',
      'src/wrong.ts:1 says "Of"',
      'src/wrong.ts:2 says "What"',
      'src/wrong.ts:3 says "null:"',
      'src/wrong.ts:8 says "Every act"',
      'test/api-acts.test.ts has the name "api-acts.test"',
      'web/wrong.css:1 says "in hand"',
      'web/wrong.css has the name "dialog-acts"',
    ],
  );
});

/** Makes a tiny repository with these files. Returns its path. */
function plant(t: { after: (clear: () => void) => void }, files: Record<string, string>): string {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-house-'));
  t.after(() => fs.rmSync(root, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), text);
  }
  return root;
}
