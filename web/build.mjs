// Builds the browser applications into web/dist: `npm run build:web`.
//
//   web/dist/pay/assets/…        files for the browser; a name contains the hash of its file
//   web/dist/pay/server.js       renders the page on the server and needs no package
//   web/dist/pay/manifest.json   the script's name and integrity hash
//   web/dist/docs/*.js           scripts of the documentation pages
//   web/dist/console/index.html  the operators' console; its files are in web/dist/console/assets
//   web/dist/packages/*.js       packages that the service loads, each as one file
//                                (scripts/build-packages.mjs)
//   web/dist/stamp               the hash of all sources (stamp.mjs)

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { build } from 'vite';
import { buildPackages } from '../scripts/build-packages.mjs';
import { distFolder, sourcesStamp } from './stamp.mjs';

/**
 * The tokens follow the system's colour scheme. In the console a person may choose a scheme, which
 * becomes an attribute of the root element. This plugin repeats each set of tokens under a selector
 * for that attribute.
 */
const chosenColours = {
  name: 'chosen-colours',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('tokens.css')) return null;
    const [light, dark] = [...code.matchAll(/:root \{([^}]*)\}/g)].map(([, values]) => values);
    const chosen = (scheme, values) => `:root[data-mantine-color-scheme="${scheme}"] {${values}}\n`;
    return `${code}\n${chosen('light', light)}${chosen('dark', dark)}`;
  },
};

// The build goes to another folder that is then renamed, so that a starting process never reads
// half of it.
const building = `${distFolder}.${process.pid}`;
const stamp = sourcesStamp();

try {
  await buildPay();
  for (const name of ['docs', 'doctor']) await buildDocs(name);
  await buildConsole();
  await buildPackages(path.join(building, 'packages'));
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
        // The script is one file: a second round trip would take longer than loading it all.
        rolldownOptions: { input: 'browser.tsx' },
        modulePreload: { polyfill: false },
      },
    }),
  ].flat();
  await build({
    ...shared,
    // Every package is bundled, because a production installation has neither Vite nor Preact.
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

/** Builds each script separately, so that none of them needs a second file. */
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

/** Each page is a separate chunk, so that the first one does not wait for the others. */
async function buildConsole() {
  await build({
    configFile: false,
    root: path.join(import.meta.dirname, 'console'),
    logLevel: 'warn',
    plugins: [chosenColours],
    oxc: { jsx: { runtime: 'automatic', importSource: 'react' } },
    build: {
      outDir: path.join(building, 'console'),
      emptyOutDir: true,
      // The content security policy allows no data: URLs.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rolldownOptions: {
        onwarn(warning, warn) {
          // Mantine marks its files for React's servers, but we render only in the browser.
          if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') warn(warning);
        },
      },
    },
  });
}
