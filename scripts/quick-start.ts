import path from 'node:path';
import { pathToFileURL } from 'node:url';

const root = path.dirname(import.meta.dirname);

/** A cache of compiled modules, for processes that load the same ones. */
export const compiledFolder = path.join(root, 'node_modules/.cache/compiled');

const packages = pathToFileURL(path.join(root, 'bin/packages.mjs')).href;

/**
 * The environment of processes that start quickly: they compile each module once for all of them,
 * and load some packages as one file each.
 */
export const quickStart = () => ({
  NODE_COMPILE_CACHE: compiledFolder,
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${packages}`.trim(),
});
