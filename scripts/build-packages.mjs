// Bundles packages with many files into one file each. bin/packages.mjs loads them.

import { build } from 'vite';

/** Our code imports these. Any other import from the same packages needs a line here. */
const specifiers = [
  'fast-json-stringify',
  'fastify',
  'kysely',
  'nodemailer',
  'pg',
  'pino',
  'prom-client',
  'stripe',
  'typebox',
  'typebox/compile',
  'typebox/format',
  'typebox/system',
  'undici',
];

/** @param {string} outDir */
export async function buildPackages(outDir) {
  const entries = new Map();
  for (const specifier of specifiers) entries.set(specifier, await exportsOf(specifier));
  await build({
    configFile: false,
    root: import.meta.dirname,
    logLevel: 'warn',
    ssr: { noExternal: true },
    plugins: [
      {
        name: 'entries',
        enforce: 'pre',
        resolveId: (id) => (id.startsWith('entry:') ? `\0${id}` : null),
        load: (id) => (id.startsWith('\0entry:') ? entries.get(id.slice('\0entry:'.length)) : null),
      },
    ],
    build: {
      outDir,
      emptyOutDir: true,
      ssr: true,
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(
          specifiers.map((name) => [name.replace('/', '.'), `entry:${name}`]),
        ),
        output: { entryFileNames: '[name].js', chunkFileNames: 'shared-[hash].js' },
      },
    },
  });
}

/**
 * A module that exports what Node finds in a package. A bundler finds fewer exports in CommonJS.
 *
 * @param {string} specifier
 */
async function exportsOf(specifier) {
  const from = JSON.stringify(specifier);
  const names = Object.keys(await import(specifier));
  const named = names.filter((name) => name !== 'default' && name !== 'module.exports');
  if (names.includes('module.exports')) {
    return `import whole from ${from};
      export default whole;
      export const { ${named.join(', ')} } = whole;`;
  }
  const whole = names.includes('default') ? `export { default } from ${from};` : '';
  return `export * from ${from}; ${whole}`;
}
