// Runs npm and other programs for the bootstrap.

import { spawn } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { modules, root, showProgress } from './common.mjs';

/** @type {import('node:child_process').ChildProcess | null} */
let current = null;

/** @param {NodeJS.Signals} signal */
export function stopCurrent(signal) {
  current?.kill(signal);
}

/**
 * Runs a program without showing its output. The caller checks the result.
 * @param {string} command
 * @param {string[]} args
 */
export function runQuietly(command, args, env = {}) {
  const begun = Date.now();
  const done = showProgress(() => `  ${Math.round((Date.now() - begun) / 1000)} s`);
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...cleanEnvironment(), ...env },
      stdio: 'ignore',
    });
    current = child;
    child.on('error', resolve);
    child.on('close', resolve);
  }).finally(done);
}

/**
 * @param {string[]} args
 * @param {(pid: number | undefined) => void} started
 * @returns {Promise<{ code: number, output: string }>}
 */
export function runNpm(args, started) {
  const quiet = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error'];
  // npm must not check the packages' `engines` against the Node that installs them, because they
  // refer to the pinned Node.
  const all = [...args, '--engine-strict=false', '--legacy-peer-deps=false', ...quiet];
  const env = cleanEnvironment();
  // This uses the npm that called us, on its own Node, because npm may be about to replace the Node
  // on PATH.
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  const known = npm?.endsWith('npm-cli.js') && node && !node.startsWith(modules);
  const child = known
    ? spawn(node, [npm, ...all], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
    : spawn('npm', all, {
        cwd: root,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
        shell: process.platform === 'win32',
      });
  current = child;
  started(child.pid);
  return new Promise((resolve) => {
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      output += chunk;
    });
    child.on('error', (error) => resolve({ code: 1, output: `npm: ${error.message}` }));
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

/** The environment without the variables that npm or Node set only for this process. */
export function cleanEnvironment() {
  const env = { ...process.env };
  const onlyForTheCaller =
    /^(npm_(lifecycle|package|command)|npm_config_(global|location|omit|only|production|dry_run|package_lock|workspaces?|local_prefix|prefix|json|loglevel|silent|include)$|NODE_(OPTIONS|ENV|CHANNEL_FD|TEST_CONTEXT)$)/i;
  for (const name of Object.keys(env)) {
    if (onlyForTheCaller.test(name)) delete env[name];
    else if (name.toUpperCase() === 'PATH') {
      const own = path.join('node_modules', '.bin');
      const rest = (env[name] ?? '').split(path.delimiter).filter((part) => !part.endsWith(own));
      env[name] = rest.join(path.delimiter);
    }
  }
  return env;
}
