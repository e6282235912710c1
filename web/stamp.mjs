// Tells whether web/dist was built from the sources in the tree. It is plain JavaScript without
// packages, because the bootstrap imports it before anything is installed.

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const web = path.dirname(fileURLToPath(import.meta.url));
const root = path.dirname(web);

export const distFolder = path.join(web, 'dist');
const stampFile = path.join(distFolder, 'stamp');

// Sources outside web/ that the pages import, and the versions of the build tools.
const elsewhere = [
  'package-lock.json',
  'scripts/build-packages.mjs',
  'src/operating/docs/logo.svg',
  'src/platform/signing/signature-mistakes.ts',
  'src/purchases/shoppers/pay-page.ts',
  'src/platform/shared/hosted-page.ts',
  'src/platform/shared/language.ts',
  'src/platform/shared/money.ts',
  'src/platform/shared/words/fill-in.ts',
];

/** One hash over everything that the build reads. */
export function sourcesStamp() {
  const own = fs
    .readdirSync(web, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath ?? entry.path, entry.name)))
    .filter((file) => !/^web[\\/]dist\b/.test(file));
  const hash = createHash('sha256');
  for (const file of [...own, ...elsewhere].sort()) {
    hash.update(`${file}\n`).update(fs.readFileSync(path.join(root, file)));
  }
  return hash.digest('hex');
}

/** @returns {boolean} */
export function isBuilt() {
  return fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === sourcesStamp();
}
