// Lays out the content of a release, for `npm run release` and for `npm run release:verify`.

import fs from 'node:fs';
import path from 'node:path';
import { isSdkBuilt } from '../../sdk/build.mjs';
import { isBuilt } from '../../web/stamp.mjs';
import { Refusal, readJson, releaseFile, root } from '../bootstrap/common.mjs';
import { findPlace } from '../check-lock.ts';

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
  'scripts/build-packages.mjs',
  'scripts/chromium.mjs',
  'sdk',
  'src',
  'test-gateway',
  'web',
];

/** These build the pages and the SDK. The other peer dependencies are built into the pages. */
const buildTools = ['typescript', 'vite'];

/** Tests are left out, and so is what other builds left behind. */
const isShipped = (file) =>
  !/\.test\.ts$|(^|[\\/])node_modules([\\/]|$)|[\\/]dist\.\d+/.test(path.relative(root, file));

export const { version } = readJson(path.join(root, 'package.json'));

/**
 * Copies the program, the built pages and the SDK into a new folder.
 * @param {string} folder
 */
export function stageRelease(folder) {
  if (!isBuilt() || !isSdkBuilt()) {
    throw new Refusal(
      'The pages or the SDK are not built from these sources: run `node scripts/bootstrap.mjs`.',
    );
  }
  for (const part of parts) {
    fs.cpSync(path.join(root, part), path.join(folder, part), {
      recursive: true,
      filter: isShipped,
    });
  }
  writePackages(folder, ({ peerDependencies: _build, devDependencies: _test, ...rest }) => rest);
  fs.writeFileSync(path.join(folder, releaseFile), `${JSON.stringify({ version })}\n`);
  // A sandbox's shop finds the SDK where npm would install it.
  const packages = path.join(folder, 'examples/shop/node_modules/@tranche');
  fs.mkdirSync(packages, { recursive: true });
  fs.symlinkSync('../../../../sdk', path.join(packages, 'merchant'), 'junction');
}

/**
 * Writes a package.json and a lock file with the packages that a release needs to run, and those
 * that its pages were built from.
 * @param {string} folder
 */
export function stagePackages(folder) {
  fs.mkdirSync(folder, { recursive: true });
  writePackages(folder, ({ peerDependencies, devDependencies: _test, ...rest }) => {
    const pages = Object.entries(peerDependencies).filter(([name]) => !buildTools.includes(name));
    return { ...rest, dependencies: { ...rest.dependencies, ...Object.fromEntries(pages) } };
  });
}

/**
 * Writes package.json and package-lock.json with what `choose` leaves of the project's
 * dependencies.
 * @param {string} folder
 * @param {(manifest: any) => any} choose
 */
function writePackages(folder, choose) {
  const manifest = choose(readJson(path.join(root, 'package.json')));
  const lock = readJson(path.join(root, 'package-lock.json'));
  const packages = { '': choose(lock.packages['']) };
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

/**
 * @param {string} file
 * @param {unknown} value
 */
export function write(file, value) {
  fs.writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
