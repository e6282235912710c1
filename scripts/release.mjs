// Makes what a server installs: `npm run release [-- FILE]` writes tranche-VERSION.tar.gz. It holds
// the program, the built pages, and a package.json and lock file with only the packages that run it:
//
//   tar -xzf tranche-VERSION.tar.gz && cd tranche-VERSION && npm ci && bin/tranche serve

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { isSdkBuilt } from '../sdk/build.mjs';
import { isBuilt } from '../web/stamp.mjs';
import { readJson, releaseFile, root, say } from './bootstrap/common.mjs';
import { findPlace } from './check-lock.ts';

const parts = [
  '.npmrc',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'bin',
  'docs',
  'examples',
  'migrations',
  'ops',
  'scripts/bootstrap',
  'scripts/bootstrap.mjs',
  'scripts/chromium.mjs',
  'sdk',
  'src',
  'test-gateway',
  'web',
];

/** Tests and what other builds left behind stay here. */
const isShipped = (file) =>
  !/\.test\.ts$|(^|[\\/])node_modules([\\/]|$)|[\\/]dist\.\d+/.test(path.relative(root, file));

if (!isBuilt() || !isSdkBuilt()) {
  say('The pages or the SDK are not built from these sources: run `node scripts/bootstrap.mjs`.');
  process.exit(1);
}
const { version } = readJson(path.join(root, 'package.json'));
const name = `tranche-${version}`;
const target = path.resolve(process.argv[2] ?? `${name}.tar.gz`);
const staging = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-release-'));
try {
  const folder = path.join(staging, name);
  for (const part of parts) {
    fs.cpSync(path.join(root, part), path.join(folder, part), {
      recursive: true,
      filter: isShipped,
    });
  }
  writePackages(folder);
  fs.writeFileSync(path.join(folder, releaseFile), `${JSON.stringify({ version })}\n`);
  // The shop of a sandbox finds the SDK as npm would install it.
  const packages = path.join(folder, 'examples/shop/node_modules/@tranche');
  fs.mkdirSync(packages, { recursive: true });
  fs.symlinkSync('../../../../sdk', path.join(packages, 'merchant'), 'junction');
  execFileSync('tar', ['-czf', target, '-C', staging, name]);
} finally {
  fs.rmSync(staging, { recursive: true, force: true });
}
say(`${target} is ready.`);

/** Writes package.json and package-lock.json without what only builds, tests or checks. */
function writePackages(folder) {
  const serving = ({ peerDependencies: _build, devDependencies: _test, ...rest }) => rest;
  const manifest = serving(readJson(path.join(root, 'package.json')));
  const lock = readJson(path.join(root, 'package-lock.json'));
  const packages = { '': serving(lock.packages['']) };
  const remaining = [''];
  for (let place = remaining.pop(); place !== undefined; place = remaining.pop()) {
    const { dependencies, optionalDependencies, peerDependencies } = packages[place];
    const wanted = { ...dependencies, ...optionalDependencies, ...peerDependencies };
    for (const name of Object.keys(wanted)) {
      const target = findPlace(lock, place, name);
      if (target === undefined || target in packages) continue;
      packages[target] = lock.packages[target];
      remaining.push(target);
    }
  }
  const sorted = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
  write(path.join(folder, 'package.json'), manifest);
  write(path.join(folder, 'package-lock.json'), { ...lock, packages: sorted });
}

function write(file, value) {
  fs.writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
