// Builds the package into sdk/dist: JavaScript for Node 20 and newer, with types. `npm run build`,
// `npm pack` and the bootstrap run it. It needs only the TypeScript compiler.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const sdk = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(sdk, 'dist');
const stampFile = path.join(dist, 'stamp');

/** One hash over everything that the build reads. */
function sourcesStamp() {
  const hash = createHash('sha256');
  const sources = fs.readdirSync(path.join(sdk, 'src')).sort();
  for (const file of ['build.mjs', 'tsconfig.json', ...sources.map((name) => `src/${name}`)]) {
    hash.update(`${file}\n`).update(fs.readFileSync(path.join(sdk, file)));
  }
  return hash.digest('hex');
}

/** @returns {boolean} */
export function isSdkBuilt() {
  return fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === sourcesStamp();
}

/** @returns {string | null} what went wrong */
function build() {
  // Build beside the target and rename, so that a process that starts meanwhile never reads half.
  const building = `${dist}.${process.pid}`;
  const stamp = sourcesStamp();
  const compiler = path.join(sdk, '../node_modules/typescript/bin/tsc');
  try {
    const result = spawnSync(process.execPath, [compiler, '-p', sdk, '--outDir', building], {
      encoding: 'utf8',
    });
    if (result.status !== 0) return result.error?.message ?? result.stdout.trim();
    for (const name of fs.readdirSync(building).filter((file) => file.endsWith('.d.ts'))) {
      // tsc does not rewrite these names in declarations, and older compilers refuse them.
      const file = path.join(building, name);
      const text = fs.readFileSync(file, 'utf8');
      fs.writeFileSync(file, text.replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"));
    }
    fs.writeFileSync(path.join(building, 'stamp'), stamp);
    fs.rmSync(dist, { recursive: true, force: true });
    fs.renameSync(building, dist);
    // Every copy of the package must contain the licence.
    fs.copyFileSync(path.join(sdk, '../LICENSE'), path.join(sdk, 'LICENSE'));
    return null;
  } finally {
    fs.rmSync(building, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !isSdkBuilt()) {
  const problem = build();
  if (problem !== null) {
    process.stderr.write(`${problem}\n`);
    process.exitCode = 1;
  }
}
