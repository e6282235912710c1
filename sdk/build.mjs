// Builds the package into sdk/dist: JavaScript for Node 20 and newer, with types, and the archive
// that every installation serves to its merchants. `npm run build`, `npm pack` and the bootstrap
// run it. It needs only the TypeScript compiler.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const sdk = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(sdk, 'dist');
const stampFile = path.join(dist, 'stamp');
const { version } = JSON.parse(fs.readFileSync(path.join(sdk, 'package.json'), 'utf8'));
const archiveName = `tranche-merchant-${version}.tgz`;

/** One hash over everything that the build reads. */
function sourcesStamp() {
  const hash = createHash('sha256');
  const sources = fs.readdirSync(path.join(sdk, 'src')).sort();
  const others = ['build.mjs', 'package.json', 'README.md', '../LICENSE', 'tsconfig.json'];
  for (const file of [...others, ...sources.map((name) => `src/${name}`)]) {
    hash.update(`${file}\n`).update(fs.readFileSync(path.join(sdk, file)));
  }
  return hash.digest('hex');
}

/** @returns {boolean} */
export function isSdkBuilt() {
  return fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === sourcesStamp();
}

/**
 * Packs the files that `npm pack` would. The same sources make the same bytes on every machine, so
 * a merchant's lock file stays valid when a node is installed again.
 *
 * @param {string} building
 */
function pack(building) {
  const built = fs.readdirSync(building).sort();
  const files = [
    ...['package.json', 'LICENSE', 'README.md'].map((name) => [name, path.join(sdk, name)]),
    ...built.map((name) => [`dist/${name}`, path.join(building, name)]),
  ];
  const entries = files.flatMap(([name, file]) => {
    const content = fs.readFileSync(file);
    const rest = (512 - (content.length % 512)) % 512;
    return [header(`package/${name}`, content.length), content, Buffer.alloc(rest)];
  });
  const archive = gzipSync(Buffer.concat([...entries, Buffer.alloc(1024)]), { level: 9 });
  // This byte names the operating system; 255 means unknown.
  archive[9] = 255;
  return archive;
}

/**
 * The header of a file in an archive (POSIX ustar).
 *
 * @param {string} name
 * @param {number} size
 */
function header(name, size) {
  const block = Buffer.alloc(512);
  const octal = (/** @type {number} */ value, /** @type {number} */ digits) =>
    `${value.toString(8).padStart(digits, '0')}\0`;
  block.write(name, 0);
  block.write(octal(0o644, 7), 100);
  // Owner and group are 0, and the time is the same for all builds.
  block.write(octal(0, 7) + octal(0, 7) + octal(size, 11) + octal(499_162_500, 11), 108);
  // The checksum is computed with spaces in its own place.
  block.write(`${' '.repeat(8)}0`, 148);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)} `, 148);
  return block;
}

/** @returns {string | null} what went wrong */
function build() {
  // The build goes to another folder that is then renamed, so that a starting process never reads
  // an incomplete build.
  const building = `${dist}.${process.pid}`;
  const stamp = sourcesStamp();
  const compiler = path.join(sdk, '../node_modules/typescript/bin/tsc');
  if (!fs.existsSync(compiler)) {
    return 'The compiler is not installed: run `npm ci` in the folder above, then this again.';
  }
  try {
    const result = spawnSync(process.execPath, [compiler, '-p', sdk, '--outDir', building], {
      encoding: 'utf8',
    });
    if (result.status !== 0)
      return result.error?.message ?? (result.stdout || result.stderr).trim();
    for (const name of fs.readdirSync(building).filter((file) => file.endsWith('.d.ts'))) {
      // tsc does not rewrite these names in declarations, and older compilers refuse them.
      const file = path.join(building, name);
      const text = fs.readFileSync(file, 'utf8');
      fs.writeFileSync(file, text.replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"));
    }
    // Every copy of the package must contain the licence.
    fs.copyFileSync(path.join(sdk, '../LICENSE'), path.join(sdk, 'LICENSE'));
    fs.writeFileSync(path.join(building, archiveName), pack(building));
    fs.writeFileSync(path.join(building, 'stamp'), stamp);
    fs.rmSync(dist, { recursive: true, force: true });
    fs.renameSync(building, dist);
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
