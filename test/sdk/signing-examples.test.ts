import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';

import { readJson } from '#platform/http/json.ts';
import { writeSamples } from '#platform/http/request-samples.ts';
import { sign as signAsService, verifySignature } from '#platform/signing/signature.ts';
import { sign, verifyCallback } from '../../sdk/src/index.ts';
import { isLong } from '../support/service.ts';

// Runs the shared test vectors against everything that signs: the service, the SDK, and the
// examples of the guides, each in its own language if the machine can run it.

type Vector = {
  name: string;
  kind: 'request' | 'callback';
  signing_key: string;
  body: string;
  signature: string;
  valid: boolean;
};

const root = path.join(import.meta.dirname, '../..');
const examples = path.join(root, 'docs/merchants/signing');
const { vectors }: { vectors: Vector[] } = JSON.parse(
  await readFile(path.join(root, 'docs/merchants/signature-vectors.json'), 'utf8'),
);

type Language = {
  needs: string[];
  files: string[][];
  commands: string[][];
  /** Compilers take seconds, so their languages run only in `npm run test:long`. */
  isSlow?: true;
};

/** The commands that run the example in each language; the last one prints. */
const languages: Record<string, Language> = {
  JavaScript: {
    needs: ['node'],
    files: [],
    commands: [['node', path.join(root, 'test/support/signing/run.mjs')]],
  },
  PHP: {
    needs: ['php'],
    files: [['signing.php'], ['run.php']],
    commands: [['php', 'run.php']],
  },
  Python: {
    needs: ['python3'],
    files: [['signing.py'], ['run.py']],
    commands: [['python3', 'run.py']],
  },
  Ruby: {
    needs: ['ruby'],
    files: [['signing.rb'], ['run.rb']],
    commands: [['ruby', 'run.rb']],
  },
  Java: {
    needs: ['javac', 'java'],
    files: [['Signing.java'], ['Run.java']],
    commands: [
      ['javac', '-encoding', 'UTF-8', 'Signing.java', 'Run.java'],
      ['java', '-cp', '.', 'Run'],
    ],
    isSlow: true,
  },
  Go: {
    needs: ['go'],
    files: [['signing.go', 'signing/signing.go'], ['run.go']],
    commands: [['go', 'run', 'run.go']],
    isSlow: true,
  },
  'C#': {
    needs: ['dotnet'],
    files: [['Signing.cs'], ['Run.cs']],
    commands: [['dotnet', 'run', '--project', '.']],
    isSlow: true,
  },
};

const isHere = (program: string) =>
  (process.env.PATH ?? '')
    .split(path.delimiter)
    .some((folder) => existsSync(path.join(folder, program)));

/** Why a language is skipped, or false if it runs. */
function whyNot(missing: string | undefined, isSlow = false): string | false {
  if (missing !== undefined) return `there is no ${missing} on this machine`;
  return isSlow && !isLong && 'it runs in the long tests';
}

async function run(
  [program = '', ...args]: string[],
  cwd: string,
  input: string,
  more: Record<string, string> = {},
) {
  const child = spawn(program, args, {
    cwd,
    // Compilers must not download anything.
    env: { ...process.env, ...more, GOPROXY: 'off', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  // Only the program reads the input, not the compiler.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  assert.equal(code, 0, stderr);
  return stdout;
}

describe('the vectors', () => {
  test('match what the service signs and accepts', () => {
    for (const { name, kind, signing_key, body, signature, valid } of vectors) {
      const bytes = Buffer.from(body);
      if (kind === 'request') assert.deepEqual(readJson(bytes).compact, bytes, name);
      if (valid) assert.equal(signAsService(signing_key, bytes), signature, name);
      const taken = verifySignature(signature, bytes, [signing_key]) !== null;
      assert.equal(taken, valid, name);
    }
  });

  test('match what the SDK signs and accepts', async () => {
    for (const { name, kind, signing_key, body, signature, valid } of vectors) {
      if (valid) assert.equal(await sign(body, signing_key), signature, name);
      const verifying = verifyCallback(Buffer.from(body), signature, ['sig_other', signing_key], {
        requireTimestamp: false,
      });
      const code = await verifying.then(
        () => null,
        (error) => error.code,
      );
      // A merchant's own signed request is not a callback.
      if (valid) assert.equal(code, kind === 'callback' ? null : 'not_a_callback', name);
      else assert.match(code, /^signature_/, name);
    }
  });
});

describe('the example in', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tranche-signing-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  for (const [language, { needs, files, commands, isSlow }] of Object.entries(languages)) {
    const missing = needs.find((program) => !isHere(program));
    const skip = whyNot(missing, isSlow);
    test(`${language} signs and verifies as the vectors say`, { skip }, async () => {
      const own = path.join(folder, language);
      await mkdir(own);
      for (const [name = '', place = name] of files) {
        const from = existsSync(path.join(examples, name))
          ? examples
          : `${root}/test/support/signing`;
        await mkdir(path.dirname(path.join(own, place)), { recursive: true });
        await copyFile(path.join(from, name), path.join(own, place));
      }
      if (language === 'Go') await writeFile(path.join(own, 'go.mod'), 'module example\n');
      if (language === 'C#') await writeFile(path.join(own, 'run.csproj'), await project(own));
      const encoded = vectors.map(({ signing_key, body, signature }) =>
        [signing_key, body, signature].map((text) => Buffer.from(text).toString('base64')),
      );
      const input = `${encoded.map((fields) => fields.join('\t')).join('\n')}\n`;
      let output = '';
      for (const command of commands) output = await run(command, own, input);
      const lines = output.trim().split(/\r?\n/);
      assert.equal(lines.length, vectors.length);
      for (const [index, { name, signature, valid }] of vectors.entries()) {
        const [made, taken] = lines[index]?.split(' ') ?? [];
        if (valid) assert.equal(made, signature, name);
        assert.equal(taken, String(valid), name);
      }
    });
  }
});

/** A project file for the installed version of .NET. */
async function project(cwd: string): Promise<string> {
  const version = Number.parseInt(await run(['dotnet', '--version'], cwd, ''), 10);
  return `<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net${version}.0</TargetFramework></PropertyGroup></Project>\n`;
}

describe('the sample of the reference in', () => {
  const order = {
    checkout: {
      amount: 150_000,
      client_reference_id: `it's "1001"`,
      customer: { email: 'thandi@example.com' },
      line_items: [{ name: 'Boots', amount: 150_000, quantity: 1 }],
    },
  };
  const secrets = { CLIENT_SECRET: 'cs_sandbox_x', SIGNING_KEY: 'sig_sandbox_y' };
  type Received = { line: string; headers: IncomingHttpHeaders; body: Buffer };
  let received: Received[] = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    received.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
    response.setHeader('content-type', 'application/json').end('{"data":[]}');
  });
  let folder: string;
  let origin: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tranche-samples-'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.close();
    await rm(folder, { recursive: true, force: true });
  });

  const programs: [lang: string, file: string, command: string[]][] = [
    ['Shell', 'sample.sh', ['bash']],
    ['JavaScript', 'sample.mjs', ['node']],
    ['PHP', 'sample.php', ['php']],
    ['Python', 'sample.py', ['python3']],
    ['Ruby', 'sample.rb', ['ruby']],
    ['Java', 'Example.java', ['java']],
    ['Go', 'sample.go', ['go', 'run']],
    ['C#', 'Sample.cs', ['dotnet', 'run', '--project', '.']],
  ];
  for (const [lang, file, command] of programs) {
    const [program = ''] = command;
    const skip = whyNot(isHere(program) ? undefined : program, languages[lang]?.isSlow);
    test(`${lang} asks for a page, and sends an order that is signed`, { skip }, async () => {
      received = [];
      const own = path.join(folder, file);
      await mkdir(own);
      const query = [{ name: 'page[number]', value: '2' }];
      for (const request of [
        { address: `${origin}/api/checkouts`, query },
        {
          address: `${origin}/api/checkouts`,
          query: [],
          post: { body: order, idempotencyKey: 'one' },
        },
      ]) {
        const sample = writeSamples(request).find((one) => one.lang === lang);
        await writeFile(path.join(own, file), sample?.source ?? '');
        const args = lang === 'C#' ? [] : [file];
        if (lang === 'C#') await writeFile(path.join(own, 'run.csproj'), await project(own));
        assert.match(await run([...command, ...args], own, '', secrets), /"data":|data: \[\]/);
      }
      const [asked, sent] = received as [Received, Received];
      assert.equal(decodeURIComponent(asked.line), 'GET /api/checkouts?page[number]=2');
      assert.equal(sent.line, 'POST /api/checkouts');
      for (const { headers } of received) {
        assert.equal(headers.authorization, `Bearer ${secrets.CLIENT_SECRET}`);
      }
      assert.equal(sent.headers['content-type'], 'application/json');
      assert.equal(sent.headers['idempotency-key'], 'one');
      assert.deepEqual(JSON.parse(sent.body.toString()), order);
      assert.deepEqual(readJson(sent.body).compact, sent.body);
      const signature = String(sent.headers['x-signature']);
      assert.notEqual(verifySignature(signature, sent.body, [secrets.SIGNING_KEY]), null);
    });
  }
});
