// Builds the browser applications into web/dist: `npm run build:web`.
//
//   web/dist/pay/assets/…        what a browser loads, named by its content, never changing
//   web/dist/pay/server.js       renders the page on the server; no package is needed to run it
//   web/dist/pay/manifest.json   the script's name, its integrity hash
//   web/dist/docs/*.js           what the pages of the documentation load
//   web/dist/stamp               what it was built from (stamp.mjs)

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { build } from 'vite';
import { distFolder, sourcesStamp } from './stamp.mjs';

// Built beside and then moved, so that nobody who starts meanwhile reads half of it.
const building = `${distFolder}.${process.pid}`;
const stamp = sourcesStamp();

try {
  await buildPay();
  for (const name of ['docs', 'doctor']) await buildDocs(name);
  fs.writeFileSync(path.join(building, 'stamp'), stamp);
  fs.rmSync(distFolder, { recursive: true, force: true });
  fs.renameSync(building, distFolder);
} finally {
  fs.rmSync(building, { recursive: true, force: true });
}

async function buildPay() {
  const outDir = path.join(building, 'pay');
  const shared = {
    configFile: false,
    root: path.join(import.meta.dirname, 'pay'),
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  };
  const [browser] = [
    await build({
      ...shared,
      build: {
        outDir,
        emptyOutDir: true,
        // One file: the whole page is smaller than a second round trip.
        rolldownOptions: { input: 'browser.tsx' },
        modulePreload: { polyfill: false },
      },
    }),
  ].flat();
  await build({
    ...shared,
    // Everything inside: a production installation has neither Vite nor Preact.
    ssr: { noExternal: true },
    build: {
      outDir,
      emptyOutDir: false,
      ssr: 'server.tsx',
      assetsInlineLimit: Number.POSITIVE_INFINITY,
      cssMinify: true,
    },
  });
  const script = browser.output.find((file) => file.type === 'chunk' && file.isEntry);
  const bytes = fs.readFileSync(path.join(outDir, script.fileName));
  const integrity = `sha384-${createHash('sha384').update(bytes).digest('base64')}`;
  const manifest = { script: { file: script.fileName, integrity } };
  fs.writeFileSync(path.join(outDir, 'manifest.json'), `${JSON.stringify(manifest)}\n`);
}

/** Each script by itself, so that neither needs a second file. */
async function buildDocs(name) {
  await build({
    configFile: false,
    root: path.join(import.meta.dirname, 'docs'),
    logLevel: 'warn',
    build: {
      outDir: path.join(building, 'docs'),
      emptyOutDir: false,
      rolldownOptions: { input: `${name}.ts`, output: { entryFileNames: '[name].js' } },
      modulePreload: { polyfill: false },
    },
  });
}
