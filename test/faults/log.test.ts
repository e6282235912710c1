import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = path.join(import.meta.dirname, '../..');

/** Runs a program that logs. Once its standard input ends, it does `work`. */
function startLogging(t: TestContext, stdout: number | 'pipe', work: string) {
  const program = `
    import { spawnSync } from 'node:child_process';
    import { statSync, truncateSync } from 'node:fs';
    import { text } from 'node:stream/consumers';
    import { openLog } from '#hosting/running/log.ts';
    import { droppedLogLines } from '#platform/http/metrics.ts';
    const log = openLog({ logLevel: 'info', traces: null });
    const logLines = (count, size) => {
      for (let each = 0; each < count; each += 1) log.info({}, 'x'.repeat(size));
    };
    const countDropped = async () => (await droppedLogLines.get()).values[0].value;
    await text(process.stdin);
    ${work}`;
  // Run by a shell, because a limit on the size of files is inherited.
  const child = spawn(
    'sh',
    ['-c', `ulimit -f 8; exec "$0" "$@"`, process.execPath, '--input-type=module', '-e', program],
    {
      cwd: root,
      stdio: ['pipe', stdout, 'pipe'],
      // A file of the cache would be cut short.
      env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' },
    },
  );
  t.after(() => child.kill('SIGKILL'));
  const { stdin, stdout: read, stderr } = child;
  assert.ok(stdin && stderr);
  return {
    read,
    /** Returns how many lines were dropped, and the exit code. */
    async work(): Promise<{ dropped: number; code: number }> {
      stdin.end();
      const [dropped, [code]] = await Promise.all([text(stderr), once(child, 'exit')]);
      return { dropped: Number(dropped), code };
    },
  };
}

const hasFullDevice = process.platform === 'linux';

describe('a service whose log cannot be written counts the lines, and ends when it wants to', () => {
  const work = (lines: number, size: number) => `
    logLines(${lines}, ${size});
    await log.settled();
    process.stderr.write(String(await countDropped()));
    // This line is written when the process ends.
    logLines(1, 1);
    process.exit(3);`;

  test('on a full disk', { skip: !hasFullDevice }, async (t) => {
    const full = await fs.open('/dev/full', 'w');
    t.after(() => full.close());
    const program = startLogging(t, full.fd, work(100, 1_000));
    assert.deepEqual(await program.work(), { dropped: 100, code: 3 });
  });

  test('when its reader has ended', async (t) => {
    const program = startLogging(t, 'pipe', work(100, 1_000));
    program.read?.destroy();
    assert.deepEqual(await program.work(), { dropped: 100, code: 3 });
  });

  test('when its reader stalls, and a process that shares the pipe has ended', async (t) => {
    // A process that begins or ends makes the pipe blocking for all that share it.
    const another = `spawnSync(process.execPath, ['-e', '0'], { stdio: 'inherit' });`;
    const program = startLogging(t, 'pipe', another + work(60, 100_000));
    const { dropped, code } = await program.work();
    // Four of the six million characters wait.
    assert.ok(dropped >= 15 && dropped < 25, String(dropped));
    assert.equal(code, 3);
  });
});

test('a log is written again once its disk has room', async (t) => {
  const folder = await temporaryFolder();
  t.after(folder.remove);
  const name = path.join(folder.path, 'log');
  const file = await fs.open(name, 'a');
  t.after(() => file.close());
  const program = startLogging(
    t,
    file.fd,
    `logLines(20, 1_000);
    await log.settled();
    process.stderr.write(String(await countDropped()));
    const name = ${JSON.stringify(name)};
    // The last line was cut short, and is now even shorter.
    truncateSync(name, statSync(name).size - 500);
    log.info({}, 'there is room');
    await log.settled();`,
  );
  const { dropped, code } = await program.work();
  assert.ok(dropped > 0 && dropped < 20, String(dropped));
  assert.equal(code, 0);
  const lines = (await fs.readFile(name, 'utf8')).split('\n');
  assert.equal(JSON.parse(lines.at(-2) ?? '').msg, 'there is room');
  assert.equal(lines.at(-1), '');
});

test('a process that ends at once writes what it has logged', async (t) => {
  const program = startLogging(t, 'pipe', 'logLines(100, 1_000); process.exit(3);');
  assert.ok(program.read);
  const [log, { code }] = await Promise.all([text(program.read), program.work()]);
  const lines = log.trimEnd().split('\n');
  assert.deepEqual([lines.length, code], [100, 3]);
  for (const line of lines) assert.equal(JSON.parse(line).msg.length, 1_000);
});
