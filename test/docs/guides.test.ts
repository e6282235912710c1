import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { runCli } from '#cli/main.ts';
import { readGuides } from '#operating/docs/guides.ts';
import { callbackHeaders } from '#purchases/callbacks/delivery/callback-headers.ts';
import manifest from '../../package.json' with { type: 'json' };
import { commandLine } from '../support/cli.ts';
import { quietPort } from '../support/quiet-port.ts';
import { kill, type Sandbox, startSandbox } from '../support/sandbox-process.ts';
import { patientClock } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// Runs every fenced block of the README and of the guides. The commands of a file run in one shell,
// from top to bottom, beside a clone like a reader's, and JavaScript runs as a module of that
// folder. A program in a terminal of its own has none of that shell's variables. An answer shown
// below a command must have the shape of what the command printed. A block captioned with a file of
// examples/ is a quotation: its lines must be in that file. The sandbox has the same limits as a
// reader's, so a block that exceeds one fails here too. The sandbox uses the second protocol of the
// test gateway, because the other tests of a sandbox use the first. The guides fit both.

const root = path.join(import.meta.dirname, '../..');

type Block = {
  language: string;
  /** The text after the language: the name of a file, or where the block runs. */
  caption: string;
  text: string;
  line: number;
  /** Whether it directly follows the block before it. */
  follows: boolean;
};

const isQuotation = ({ caption }: Block) => caption.startsWith('examples/');
const ownTerminal = 'in a terminal of its own';
/** Whether the caption is the name of a file that the reader writes. */
const isFile = (block: Block) =>
  !['', ownTerminal].includes(block.caption) && !isQuotation(block) && block.language !== 'text';

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let end = 0;
  for (const match of text.matchAll(/^( *)```(\w*)(.*)\n([\s\S]*?)\n\1```$/gm)) {
    const [whole, indent = '', language = '', caption = '', code = ''] = match;
    blocks.push({
      language,
      caption: caption.trim(),
      text: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      line: text.slice(0, match.index).split('\n').length,
      follows: blocks.length > 0 && text.slice(end, match.index).trim() === '',
    });
    end = match.index + whole.length;
  }
  return blocks;
}

/** Commands that the test does not run word for word, and what it checks instead. */
const elsewhere: Record<string, () => void> = {
  'npm start': () =>
    // The test starts its sandbox with the same program.
    assert.equal(manifest.scripts.start, 'node bin/start.mjs'),
  'npm start     # a sandbox on its own PostgreSQL, with a demo merchant\nnpm test      # the tests':
    () => assert.match(manifest.scripts.test, /scripts\/test\.ts$/),
};

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let sandbox: Sandbox;
let clone: string;
const commands = http.createServer(runCommand);
before(async () => {
  folder = await temporaryFolder();
  await new Promise<void>((resolve) => commands.listen(0, '127.0.0.1', resolve));
  const env = { SANDBOX_GATEWAY: 'hyperswitch' };
  sandbox = await startSandbox(path.join(folder.path, 'data'), env);
  clone = path.join(folder.path, 'tranche');
  await fs.mkdir(path.join(clone, 'bin'), { recursive: true });
  await fs.symlink(sandbox.dataDir, path.join(clone, '.tranche'));
});
after(async () => {
  commands.close();
  await kill(sandbox);
  await folder.remove();
});

/**
 * Makes the program `tranche` for a guide. In the quickstart, and for a command that reads a file,
 * it is the program that a reader has. Otherwise it asks this process to run the command, because a
 * program would load hundreds of modules each time.
 */
async function placeProgram(file: string): Promise<void> {
  const place = path.join(clone, 'bin/tranche');
  const program = path.join(root, 'bin/tranche');
  await fs.rm(place, { force: true });
  if (file.endsWith('quickstart.md')) return await fs.symlink(program, place);
  const { port } = commands.address() as AddressInfo;
  const lines = [
    '#!/bin/sh',
    `case " $* " in *' --file '*) exec '${program}' "$@" ;; esac`,
    'for word; do set -- "$@" --data-urlencode "word=$word"; shift; done',
    `exec curl -s --fail-with-body http://127.0.0.1:${port} "$@"`,
  ];
  await fs.writeFile(place, lines.join('\n'), { mode: 0o755 });
}

/** Answers with the output of a command, as an error if it was refused. */
async function runCommand(request: http.IncomingMessage, response: http.ServerResponse) {
  const words = new URLSearchParams(await readText(request)).getAll('word');
  // A sandbox has its own master key.
  const { run } = commandLine(
    { DATA_DIR: sandbox.dataDir, MASTER_KEY: '' },
    { clock: patientClock },
  );
  const { code, stdout, stderr } = await run(...words);
  response.writeHead(code === 0 ? 200 : 422).end(code === 0 ? stdout : stderr);
}

/** Joins a file's blocks into one script; each block writes its output into a file of its own. */
function writeScript(blocks: Block[], outputs: string): string {
  const script = [
    'set -eo pipefail',
    "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT",
    'clone=$PWD machine_path=$PATH',
  ];
  const heredoc = (name: string, text: string) =>
    `cat > ${name} <<'END-OF-FILE'\n${text}\nEND-OF-FILE`;
  for (const [index, block] of blocks.entries()) {
    if (isQuotation(block)) continue;
    const out = `${outputs}/${index}`;
    const isNamed = isFile(block);
    script.push(`echo ${index} > ${outputs}/reached`);
    if (block.language === 'js' || isNamed) {
      const name = isNamed ? block.caption : `snippet-${index}.mjs`;
      script.push(heredoc(name, block.text));
      if (!isNamed) script.push(`node ${name} > ${out} 2> ${out}.err`);
    } else if (block.caption === ownTerminal) {
      assert.doesNotMatch(block.text, /[\n']/, 'one program per terminal');
      // With `exec` the job is the program itself, so that the trap stops it and not only a shell.
      const program = block.text.replace(/[^&\s][^&]*$/, 'exec $&');
      const fresh = 'env -i PATH="$machine_path" HOME="$HOME"';
      script.push(
        `(cd "$clone" && exec ${fresh} bash -c '${program}') > ${out} 2> ${out}.err &`,
        // The program is ready once it says that it listens.
        `for n in $(seq 1200); do [ -s ${out} ] && break; sleep 0.1; done; [ -s ${out} ]`,
      );
    } else if (block.language === 'sh' && !(block.text in elsewhere)) {
      script.push(`{\n${block.text}\n} > ${out} 2> ${out}.err`);
    }
  }
  return script.join('\n');
}

async function run(name: string, setup: Block[], own: Block[]): Promise<void> {
  const outputs = path.join(folder.path, `out-${name.replaceAll('/', '-')}`);
  await fs.mkdir(outputs);
  const blocks = [...setup.map((block) => ({ ...block, follows: false })), ...own];
  for (const { text } of own) elsewhere[text]?.();
  const port = await quietPort();
  const script = writeScript(blocks, outputs).replace(/(?<=[:(])4000\b/g, String(port));
  const child = spawn('bash', ['-c', script], {
    cwd: clone,
    env: {
      PATH: process.env.PATH,
      HOME: folder.path,
      DATA_DIR: sandbox.dataDir,
      // Without this cache, every command would compile the same files again.
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      // A guide installs from the sandbox alone: nothing answers at this address.
      npm_config_registry: 'http://127.0.0.1:9',
      npm_config_audit: 'false',
      npm_config_update_notifier: 'false',
    },
    stdio: 'ignore',
  });
  const code = await new Promise((resolve) => child.once('exit', resolve));
  const printed = (what: number | string) =>
    fs.readFile(`${outputs}/${what}`, 'utf8').catch(() => null);
  const reached = Number(await printed('reached'));
  if (code !== 0) {
    const said = `${await printed(reached)}\n${await printed(`${reached}.err`)}`;
    assert.fail(`${name}, line ${blocks[reached]?.line}: exit code ${code}\n${said}`);
  }
  for (const [index, block] of blocks.entries()) {
    const refused = `${await printed(index)}${await printed(`${index}.err`)}`;
    assert.doesNotMatch(refused, /Rate limit exceeded/, `${name}, line ${block.line}`);
    const answered = block.follows ? await printed(index - 1) : null;
    if (answered === null) continue;
    const where = `${name}, line ${block.line}`;
    // A text with an ellipsis shows only part of the output.
    if (block.language === 'text' && !block.text.includes('…')) {
      assert.equal(answered.trimEnd(), block.text.trimEnd(), where);
    }
    if (block.language !== 'json') continue;
    const shown = JSON.parse(block.text);
    assert.deepEqual(shapeOf(JSON.parse(answered)), shapeOf(shown), where);
  }
}

/** The names and types of an object's members; for a list, those of its first item. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shapeOf(one)]));
}

const runners = ['sh', 'js', 'json', 'text'];

const known = await listCommands();

async function listCommands(): Promise<string[]> {
  let help = '';
  const output = {
    write: (text: string) => {
      help += text;
    },
  };
  await runCli(['--help'], { stdout: output, stderr: output, env: {} });
  return [...help.matchAll(/^ {2}([a-z-]+(?: [a-z0-9-]+)?) {2}/gm)].map(([, name = '']) => name);
}

const files = [
  'README.md',
  'docs/merchants/overview.md',
  // Operators' commands act on an installation that a test does not have.
  ...readGuides()
    .filter(({ group }) => group !== 'Operate' && group !== 'Changes')
    .map(({ file }) => file),
].sort((one, other) => rankOf(one) - rankOf(other));

/** The quickstart installs the SDK for all guides. The guide that moves the clock is the last. */
function rankOf(file: string): number {
  if (file.endsWith('/quickstart.md')) return 0;
  return file.endsWith('/testing.md') ? 2 : 1;
}

for (const file of files) {
  test(`every command and snippet of ${file} runs and answers as shown`, async () => {
    const text = await fs.readFile(path.join(root, file), 'utf8');
    const blocks = blocksOf(text);
    for (const { language, line } of blocks) {
      assert.ok(runners.includes(language), `${file}, line ${line}: nothing runs "${language}"`);
    }
    for (const block of blocks) {
      const { caption, line } = block;
      if (!isFile(block)) continue;
      const isRun = blocks.some((block) => block.language === 'sh' && block.text.includes(caption));
      assert.ok(isRun, `${file}, line ${line}: ${caption} is never used`);
    }
    await placeProgram(file);
    await run(file, await setupFor(file), blocks);
  });
}

test('the guides quote the demo shop line by line', async () => {
  const quoting: string[] = [];
  for (const file of files) {
    const blocks = blocksOf(await fs.readFile(path.join(root, file), 'utf8'));
    for (const { caption, text, line } of blocks.filter(isQuotation)) {
      const source = await fs.readFile(path.join(root, caption), 'utf8');
      assert.ok(`\n${source}`.includes(`\n${text}\n`), `${file}, line ${line}: not in ${caption}`);
      quoting.push(file);
    }
  }
  assert.deepEqual(quoting, ['docs/merchants/callbacks.md', 'docs/merchants/refunds.md']);
});

test('the quickstart sends the browser to the reader’s own receiver', async () => {
  const text = await fs.readFile(path.join(root, 'docs/merchants/quickstart.md'), 'utf8');
  const code = blocksOf(text).map((block) => block.text);
  const urls = code.flatMap((one) => [
    ...one.matchAll(/(?:success|cancel|redirect)_url\W+?(https?:[^'"\s]+)/g),
  ]);
  assert.ok(urls.length >= 5);
  for (const [, url = ''] of urls) assert.equal(new URL(url).host, 'localhost:4000', url);
});

test('the receiver of the callbacks guide keeps a paid order paid, whatever another tab does', async () => {
  const text = await fs.readFile(path.join(root, 'docs/merchants/callbacks.md'), 'utf8');
  const [block] = blocksOf(text).filter((one) => one.text.includes('export const callbacks'));
  assert.ok(block);
  const sdk = pathToFileURL(path.join(root, 'sdk/dist/index.js')).href;
  const file = path.join(folder.path, 'quoted-receiver.mjs');
  const key = 'sig_sandbox_of-the-guide';
  await fs.writeFile(
    file,
    block.text
      .replace("'@tranche/merchant'", JSON.stringify(sdk))
      .replace('process.env.SIGNING_KEY', JSON.stringify(key)),
  );
  const { callbacks, orders } = await import(file);
  const tell = async (status: string) => {
    const body = JSON.stringify({
      status,
      amount: 150_000,
      currency: 'ZAR',
      client_reference_id: 'order-1001',
      number_of_payments: 3,
    });
    const now = Temporal.Now.instant();
    const payload = Buffer.from(body);
    const headers = callbackHeaders({ id: crypto.randomUUID(), payload, number: 1, key, now });
    const request = { method: 'POST', body, headers };
    const answer = await callbacks.fetch(new Request('http://localhost/callback', request));
    return [answer.status, orders.get('order-1001').status];
  };
  assert.deepEqual(await tell('cancelled'), [200, 'cancelled']);
  assert.deepEqual(await tell('successful'), [200, 'successful']);
  assert.deepEqual(await tell('cancelled'), [200, 'successful']);
});

test('the receiver without the SDK does not start without a signing key', async () => {
  const text = await fs.readFile(path.join(root, 'docs/merchants/callbacks.md'), 'utf8');
  const [block] = blocksOf(text).filter(({ caption }) => caption === 'shop.mjs');
  assert.ok(block);
  const code = block.text.replace('4000', '0').replace('console.log', 'process.exit');
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    env: {},
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  assert.match(await readText(child.stderr), /Error: .*SIGNING_KEY/);
});

/** A value of sandbox.json. The first guide reads it with a program. */
const sandboxValue = (name: string) =>
  name
    .split('.')
    // biome-ignore lint/suspicious/noExplicitAny: a path in a file.
    .reduce((value: any, key) => value[key], sandbox.file);

let isInstalled = false;

/** The variables that the quickstart has defined before a reader opens another guide. */
async function setupFor(file: string): Promise<Block[]> {
  if (file === 'README.md') return [];
  // The first guide makes the folder for all of them.
  const isFirst = !isInstalled;
  isInstalled = true;
  if (file.endsWith('quickstart.md')) return [];
  const text = await fs.readFile(path.join(root, 'docs/merchants/quickstart.md'), 'utf8');
  return blocksOf(text)
    .filter(({ text }) => /^(mkdir|export PATH|\. \.\/variables\.sh|post\(\))/.test(text))
    .map((block) => ({
      ...block,
      text: isFirst
        ? block.text.replace(/\npost .*$/, '')
        : block.text
            .replace(/\n(?:post|npm install) .*$/, '')
            .replaceAll(/\$\(sandbox ([\w.]+)\)/g, (_, name) => sandboxValue(name)),
    }));
}

test('every command that a guide only mentions exists', async () => {
  assert.ok(known.includes('sandbox drill'));
  for (const file of files) {
    const text = await fs.readFile(path.join(root, file), 'utf8');
    for (const [, named = ''] of text.matchAll(
      /`(?:bin\/)?tranche ([a-z][a-z-]*(?: [a-z][a-z0-9-]*)*)/g,
    )) {
      const isKnown = known.some((name) => `${named} `.startsWith(`${name} `));
      assert.ok(isKnown, `${file} names \`tranche ${named}\``);
    }
  }
});
