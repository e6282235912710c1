import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The archive of the merchant's SDK that was packed when this program was built. */
export type SdkArchive = {
  /** The address that always leads to the archive of this installation. */
  latest: string;
  /** The address with the version in it. */
  path: string;
  content: Buffer;
  about: { name: string; version: string; url: string; integrity: string };
};

const folder = new URL('../../../sdk/', import.meta.url);

export function readSdkArchive(baseUrl: string): SdkArchive {
  const { name, version } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
  const file = `tranche-merchant-${version}.tgz`;
  const content = readFileSync(new URL(`dist/${file}`, folder));
  const path = `/docs/sdk/${file}`;
  // The form in which npm writes an archive's hash into a lock file.
  const integrity = `sha512-${createHash('sha512').update(content).digest('base64')}`;
  const about = { name, version, url: `${baseUrl}${path}`, integrity };
  return { latest: '/docs/sdk/latest.tgz', path, content, about };
}
