// Makes what a server installs: `npm run release [-- FILE]` writes tranche-VERSION.tar.gz. It holds
// the program, the lock file and the built pages, so that an installation needs neither a bundler nor
// any other development package:
//
//   tar -xzf tranche-VERSION.tar.gz && cd tranche-VERSION && npm ci --omit=dev && bin/tranche serve

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { isSdkBuilt } from '../sdk/build.mjs';
import { isBuilt } from '../web/stamp.mjs';
import { releaseFile, root, say } from './bootstrap/common.mjs';

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
  'package-lock.json',
  'package.json',
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
const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
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
