// Paths, options and output that all steps of the bootstrap share.

import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '');
export const modules = path.join(root, 'node_modules');
/** Only a release has this file. Its pages and its SDK are already built. */
export const releaseFile = 'release.json';
export const isRelease = fs.existsSync(path.join(root, releaseFile));

export const withDev = process.argv.includes('--dev');
export const withBrowser = process.argv.includes('--browser');

/** A failure whose message tells the user what to do. */
export class Refusal extends Error {}

export function pinnedNode() {
  const program = process.platform === 'win32' ? 'node.exe' : 'node';
  return path.join(modules, 'node', 'bin', program);
}

/** @param {string} sentence */
export function say(sentence) {
  process.stderr.write(`tranche: ${sentence}\n`);
}

/**
 * Shows a line that is rewritten in place, but only on a terminal.
 * @param {() => string} text
 */
export function showProgress(text) {
  if (!process.stderr.isTTY || process.env.CI) return () => {};
  const draw = () => process.stderr.write(`\r\x1b[K${text()}`);
  draw();
  const timer = setInterval(draw, 250);
  return () => {
    clearInterval(timer);
    process.stderr.write('\r\x1b[K');
  };
}

/** @param {string} file */
export function readText(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
}

/** @param {string} file */
export function readJson(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
