// `npm start`: runs `tranche sandbox` through bin/tranche, which has the V8 flags. npm on Windows
// has no POSIX shell, so there the command line runs in this process, without the flags.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

/**
 * Finds npm and the shell in which it runs us. The sandbox watches both, because a signal that ends
 * one of them does not reach the sandbox.
 */
function findCallers() {
  const parent = process.ppid;
  // Some shells replace themselves with the last command. Then our parent is npm.
  const isShell = readProcess(parent, 'command').includes('start.mjs');
  return isShell ? [parent, Number(readProcess(parent, 'ppid'))] : [parent];
}

function readProcess(pid, field) {
  try {
    if (process.platform !== 'linux') {
      return execFileSync('ps', ['-o', `${field}=`, '-p', String(pid)], { encoding: 'utf8' });
    }
    if (field === 'command') return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return /^PPid:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
  } catch {
    // Windows has no `ps`.
    return '';
  }
}

const callers = findCallers().filter((pid) => pid > 1);
const ends = callers.flatMap((pid) => ['--end-with', String(pid)]);
// Options after `npm start --` belong to the sandbox.
const args = ['sandbox', ...process.argv.slice(2), ...ends];

if (process.platform === 'win32') {
  const { runCli } = await import('../src/cli/main.ts');
  process.exit(await runCli(args, process));
}
process.execve('/bin/sh', ['sh', at('tranche'), ...args], process.env);
