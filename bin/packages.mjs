// `bin/tranche` and every process of a test run import this file first. Our code then loads some
// packages as one file each, which scripts/build-packages.mjs has made. This is only for speed:
// without those files the packages are loaded from node_modules. Finding their 1,450 files took
// half the time of a start.

import fs from 'node:fs';
import module from 'node:module';

const root = new URL('../', import.meta.url);
const folder = new URL('web/dist/packages/', root);
const files = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
/** @type {Map<string, string>} */
const built = new Map(
  files.map((file) => [file.slice(0, -'.js'.length).replace('.', '/'), new URL(file, folder).href]),
);

/** @param {string | undefined} importer */
const isOurs = (importer) =>
  importer?.startsWith(root.href) && !importer.includes('/node_modules/');

/**
 * The address of a file of ours, by its name alone. Node would look up the package of each file and
 * whether the file is a link, which takes a sixth of the rest of a start.
 *
 * @param {string} specifier
 * @param {string | undefined} importer
 */
function locate(specifier, importer) {
  if (!specifier.endsWith('.ts')) return null;
  if (specifier.startsWith('#')) return new URL(`src/${specifier.slice(1)}`, root).href;
  return specifier.startsWith('.') ? new URL(specifier, importer).href : null;
}

// Some tests start a Node version that lacks this function.
module.registerHooks?.({
  resolve(specifier, context, next) {
    if (!isOurs(context.parentURL)) return next(specifier, context);
    const file = locate(specifier, context.parentURL);
    if (file !== null) return { url: file, format: 'module-typescript', shortCircuit: true };
    const url = built.get(specifier);
    if (url !== undefined) return { url, format: 'module', shortCircuit: true };
    // Two copies of a package would not recognise each other's values.
    if (built.has(specifier.split('/')[0] ?? '')) {
      throw new Error(`scripts/build-packages.mjs does not build ${specifier}`);
    }
    return next(specifier, context);
  },
});
