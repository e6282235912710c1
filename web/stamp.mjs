// Whether web/dist is made of what is in the tree now. Plain JavaScript without packages: the
// bootstrap asks before anything is installed.

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const web = path.dirname(fileURLToPath(import.meta.url));
const root = path.dirname(web);

export const distFolder = path.join(web, 'dist');
const stampFile = path.join(distFolder, 'stamp');

// What the pages take from the server's side, and the versions that they are built with.
const elsewhere = [
  'package-lock.json',
  'src/docs/mark.svg',
  'src/signing/signature-mistakes.ts',
  'src/payments/pay-page.ts',
  'src/shared/money.ts',
];

/** One value for everything that the build reads. */
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
