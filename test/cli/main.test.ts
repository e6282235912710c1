import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { catalogue } from '../../src/cli/catalogue.ts';
import { runCli } from '../../src/cli/main.ts';
import { readLines } from '../../src/cli/read-lines.ts';
import { withProgram } from '../../src/cli/terminal.ts';
import { commandLine, masterKey, type Tranche } from '../support/cli.ts';
import { createTestDatabase } from '../support/service.ts';

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let tranche: Tranche;
let folder: string;
before(async () => {
  database = await createTestDatabase();
  tranche = commandLine({ DATABASE_URL: database.url });
  folder = await mkdtemp(path.join(tmpdir(), 'cli-'));
});
after(async () => {
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

const rules = '[{"from_amount":1000,"to_amount":2000,"terms":[1]}]';
const groups: Record<string, string[]> = {
  merchants: ['create', 'list', 'show', 'rules', 'gateway', 'fee', 'bank'],
  integrations: [
    'create',
    'list',
    'show',
    'manage',
    'refunds',
    'require-signing',
    'limit',
    'rotate',
    'revoke',
  ],
  checkouts: ['show'],
  refunds: ['list', 'show', 'approve', 'decline', 'retry', 'preview'],
  instalments: ['list', 'retry'],
  gateway: ['reconcile', 'fees'],
  disputes: ['list', 'show', 'evidence', 'accept', 'rest'],
  payouts: ['list', 'show', 'approve', 'export', 'paid', 'returned', 'statement'],
  money: ['day'],
  shoppers: ['export', 'erase'],
  ledger: ['check'],
  callbacks: ['list', 'show', 'retry'],
  alerts: ['list'],
  audit: ['list'],
  keys: ['reencrypt'],
  database: ['migrate', 'distribute'],
};
const all = [
  ['sandbox'],
  ['serve'],
  ...Object.entries(groups).flatMap(([group, names]) => names.map((name) => [group, name])),
];

function assertFits(page: string): void {
  for (const line of page.split('\n')) assert.ok(line.length <= 80, line);
}

for (const words of all) {
  const name = words.join(' ');
  test(`--help of ${name} shows its usage and an example, without a database`, async () => {
    const alone = commandLine({ DATA_DIR: path.join(folder, 'none') });
    const { code, stdout, stderr } = await alone.run(...words, '--help');
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, new RegExp(`^Usage: tranche ${name}`));
    assert.match(stdout, new RegExp(`^ {2}.*tranche ${name}`, 'm'));
    assertFits(stdout);
    assert.equal((await alone.run('help', ...words)).stdout, stdout);
    assert.equal((await alone.run(...words, '-h')).stdout, stdout);
  });
}

test('each listed command is in the file that the list names', async () => {
  for (const entry of catalogue) {
    const listed = 'commands' in entry ? entry.commands : [entry];
    for (const { name, load } of listed) assert.equal((await load()).name, name);
  }
});

test('the main help lists every command, and the help of a group its own commands', async () => {
  for (const argv of [[], ['--help'], ['help'], ['-h']]) {
    const { code, stdout } = await tranche.run(...argv);
    assert.equal(code, 0);
    for (const words of all) assert.match(stdout, new RegExp(`^ {2}${words.join(' ')} `, 'm'));
    assertFits(stdout);
  }
  for (const [group, names] of Object.entries(groups)) {
    const { code, stdout } = await tranche.run(group, '--help');
    assert.equal(code, 0);
    for (const name of names) assert.match(stdout, new RegExp(`^ {2}${group} ${name} `, 'm'));
    assertFits(stdout);
    const bare = await tranche.run(group);
    assert.deepEqual(bare, { code: 2, stdout: '', stderr: stdout });
  }
});

const mistakes: [argv: string[], message: RegExp][] = [
  [['merchant', 'list'], /no command "merchant". Did you mean tranche merchants\?/],
  [['merchants', 'lits'], /no command "merchants lits". Did you mean tranche merchants list\?/],
  [['integrations', 'sign'], /no command "integrations sign". `tranche integrations --help` lists/],
  [['integrations', 'require'], /Did you mean tranche integrations require-signing\?/],
  [['xyzzy'], /no command "xyzzy". `tranche --help` lists them/],
  [['help', 'xyzzy'], /no command "xyzzy"/],
  [['--verbose', 'merchants', 'list'], /Options come after the command/],
  [['merchants', 'list', '--jsn'], /has no option --jsn. Did you mean --json\?/],
  [['merchants', 'list', '-x'], /has no option -x/],
  [['merchants', 'list', '--__proto__'], /has no option --__proto__/],
  [['merchants', 'list', '--json=yes'], /--json takes no value/],
  [['merchants', 'list', 'surplus'], /"surplus" is one argument too many.\nUsage: tranche/],
  [['merchants', 'show'], /ID is missing.\nUsage: tranche merchants show ID/],
  [['merchants', 'show', ''], /ID is missing/],
  [['merchants', 'show', 'a', 'b'], /"b" is one argument too many/],
  [['merchants', 'create'], /--name and --rules are missing.\nUsage: tranche merchants create/],
  [
    ['merchants', 'fee', 'x', '--fixed', '1'],
    /: --basis-points and --vat-basis-points are missing/,
  ],
  [['merchants', 'bank', '--bank', 'B'], /: ID, --holder, --branch-code and --account-number are/],
  [['merchants', 'create', '--name'], /--name needs a value/],
  [['merchants', 'create', '--name', '--rules', rules], /--name needs a value/],
  [['merchants', 'create', '--name', 'A', '--name', 'B'], /--name is given twice/],
];
for (const [argv, message] of mistakes) {
  test(`a mistyped "${argv.join(' ')}" gets a suggestion`, async () => {
    await tranche.refused(2, message, ...argv);
  });
}

test('--json may come before the command', async () => {
  const { code, stdout } = await tranche.run('--json', 'merchants', 'list');
  assert.equal(code, 0);
  assert.ok(Array.isArray(JSON.parse(stdout).data));
});

test('without a database a command says how to get one', async () => {
  const dataDir = path.join(folder, 'nothing');
  const message = `tranche: No sandbox is running in ${dataDir}. Start one with npm start, or set DATABASE_URL.\n`;
  const outcome = await commandLine({ DATA_DIR: dataDir }).run('merchants', 'list', '--json');
  assert.deepEqual(outcome, { code: 1, stdout: '', stderr: message });
});

test('the file of a killed sandbox does not count as a running one', async () => {
  for (const content of ['{"database_url":"postgres://x:y@127.0.0.1:1/tranche"}', '{"data', '{}']) {
    await writeFile(path.join(folder, 'sandbox.json'), content);
    await commandLine({ DATA_DIR: folder }).refused(
      1,
      /No sandbox is running in /,
      'merchants',
      'list',
    );
  }
});

test('a log on standard input may be larger than memory, because it is read line by line', async () => {
  let chunks = 0;
  async function* endless() {
    for (;;) {
      chunks += 1;
      yield Buffer.from('{"msg":"one"}\n');
      assert.ok(chunks < 10_000, 'it is read only as far as its lines are used');
    }
  }
  for await (const line of readLines('-', endless())) {
    assert.equal(line, '{"msg":"one"}');
    break;
  }
});

test('a running sandbox is found through its data folder', async () => {
  const file = path.join(folder, 'sandbox.json');
  await writeFile(file, JSON.stringify({ base_url: '', database_url: database.url }));
  assert.ok((await commandLine({ DATA_DIR: folder }).json('merchants', 'list')).data);
});

test('a database that does not answer is named without its password', async () => {
  const url = 'postgres://me:hunter2@127.0.0.1:1/tranche';
  const { code, stderr } = await commandLine({ DATABASE_URL: url }).run('merchants', 'list');
  assert.equal(code, 1);
  assert.match(stderr, /The database at 127\.0\.0\.1:1 does not answer .* Check DATABASE_URL/);
  assert.doesNotMatch(stderr, /hunter2/);
});

test('all bad settings are listed at once', async () => {
  const bad = commandLine({
    DATABASE_URL: 'mysql://x',
    TRANCHE_ENV: 'staging',
    MASTER_KEY: 'short',
  });
  await bad.refused(1, /DATABASE_URL[\s\S]*MASTER_KEY/, 'merchants', 'list');
});

test('a page calls the program by the name under which the reader can run it', async () => {
  const pages: string[] = [];
  const write = (text: string) => pages.push(text);
  const io = { stdout: { write }, stderr: { write }, env: {}, program: '../bin/tranche' };
  await runCli(['merchants', 'fee', '--help'], io);
  await runCli(['merchant'], io);
  assert.match(pages.join(''), /^Usage: \.\.\/bin\/tranche merchants fee ID$/m);
  assert.match(pages.join(''), /^ {2}\.\.\/bin\/tranche merchants fee 019/m);
  assert.match(
    pages.join(''),
    /mean \.\.\/bin\/tranche merchants\? `\.\.\/bin\/tranche --help` lists/,
  );
  // A line may end within the command, and its colour then ends and begins again there.
  for (const [end, begin] of [
    ['', ''],
    ['\ufdd3', '\ufdd2'],
  ]) {
    const page = (program: string) => `\`${program}${end}\n${begin}  find x\``;
    assert.equal(withProgram(page('tranche'), 'bin/tranche'), page('bin/tranche'));
  }
});

test('only a terminal with colours gets them', async () => {
  const colour = '\x1b[';
  const env = { DATABASE_URL: database.url };
  const help = (more: NodeJS.ProcessEnv, terminal: boolean) =>
    commandLine({ ...env, ...more }, { terminal }).run('--help');
  assert.ok((await help({}, true)).stdout.includes(colour));
  assert.ok(!(await help({}, false)).stdout.includes(colour));
  assert.ok(!(await help({ NO_COLOR: '1' }, true)).stdout.includes(colour));
  assert.ok(!(await help({ TERM: 'dumb' }, true)).stdout.includes(colour));
  await commandLine(env, { terminal: true }).json('merchants', 'list');
});

test('the program runs from any folder, through a link, and records the system user', async () => {
  const link = path.join(folder, 'tranche');
  await symlink(path.resolve(import.meta.dirname, '../../bin/tranche'), link);
  const { TRANCHE_OPERATOR: _, ...inherited } = process.env;
  const env = { ...inherited, DATABASE_URL: database.url, MASTER_KEY: masterKey };
  const run = (...argv: string[]) => promisify(execFile)(link, argv, { cwd: folder, env });
  const { stdout, stderr } = await run(
    'merchants',
    'create',
    '--name',
    'Bin',
    '--rules',
    rules,
    '--json',
  );
  assert.equal(stderr, '');
  const { id } = JSON.parse(stdout);
  const { data } = JSON.parse((await run('merchants', 'list', '--json')).stdout);
  assert.ok(data.some((one: { id: string }) => one.id === id));
  await assert.rejects(run('merchants', 'lits'), { code: 2, stdout: '' });
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query(
    'select operator from operator_actions where subject_id = $1',
    [id],
  );
  await client.end();
  assert.deepEqual(rows, [{ operator: userInfo().username }]);
});

for (const [where, script] of [
  ['a file that may not grow', 'ulimit -f 1; exec "$0" "$@" > "$FILE"'],
  ...(process.platform === 'linux' ? [['a full disk', 'exec "$0" "$@" > /dev/full']] : []),
] as [string, string][]) {
  test(`output that ${where} cuts short is a failure`, async () => {
    const program = path.resolve(import.meta.dirname, '../../src/cli/main.ts');
    const FILE = path.join(folder, 'output');
    // A file of the cache would be cut short, too.
    const env = { ...process.env, FILE, NODE_DISABLE_COMPILE_CACHE: '1' };
    const argv = ['-c', script, process.execPath, program, '--help'];
    await assert.rejects(promisify(execFile)('sh', argv, { env }), {
      code: 1,
      stderr: /^tranche: The output could not be written \(E[A-Z]+\), so it is not complete\. /,
    });
  });
}
