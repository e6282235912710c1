// Builds what is served and published: the browser side into web/dist, the SDK into sdk/dist.

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { isSdkBuilt } from '../../sdk/build.mjs';
import { distFolder, isBuilt } from '../../web/stamp.mjs';
import { isRelease, pinnedNode, Refusal, root, say } from './common.mjs';
import { cleanEnvironment } from './processes.mjs';

const sdkLink = path.join(root, 'examples/shop/node_modules/@tranche/merchant');

/** @returns {string | null} why the payment page has to be built */
export function whyBuildWeb() {
  if (isRelease || isBuilt()) return null;
  return fs.existsSync(distFolder) ? 'its sources have changed' : 'it is not built yet';
}

/** @param {string} reason */
export function buildWeb(reason) {
  say(`Building the payment page: ${reason}.`);
  build('web/build.mjs', 'The payment page could not be built. Vite’s output is above.');
}

/** @returns {string | null} why the SDK has to be built */
export function whyBuildSdk() {
  if (isRelease || (isSdkBuilt() && fs.existsSync(sdkLink))) return null;
  return 'its sources have changed, or it is not built yet';
}

/** Builds the SDK and links it into the demo shop, as npm installs a package from a folder. */
export function buildSdk() {
  build('sdk/build.mjs', 'The SDK could not be built. The compiler’s output is above.');
  fs.mkdirSync(path.dirname(sdkLink), { recursive: true });
  fs.rmSync(sdkLink, { recursive: true, force: true });
  fs.symlinkSync(path.relative(path.dirname(sdkLink), path.join(root, 'sdk')), sdkLink, 'junction');
}

/**
 * @param {string} program
 * @param {string} refusal
 */
function build(program, refusal) {
  const result = spawnSync(pinnedNode(), [path.join(root, program)], {
    cwd: root,
    encoding: 'utf8',
    env: cleanEnvironment(),
  });
  if (result.status === 0) return;
  process.stderr.write(`${result.error?.message ?? result.stderr.trim()}\n`);
  throw new Refusal(refusal);
}
