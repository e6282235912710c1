// Writes the files that accompany a release: a bill of materials (CycloneDX) and a statement of how
// the file was made (in-toto, with SLSA's provenance).

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { Refusal, readJson, root } from '../bootstrap/common.mjs';
import { stagePackages, version, write } from './stage.mjs';

/** @param {string} file */
export const sbomFile = (file) => `${file}.cdx.json`;
/** @param {string} file */
export const provenanceFile = (file) => `${file}.provenance.json`;

/**
 * Writes the bill of materials of a release. It lists the packages that `npm ci` installs, for all
 * systems, and those that were built into the pages.
 * @param {string} file the release
 * @param {string} staging a folder that the caller removes
 */
export function writeSbom(file, staging) {
  // npm names the project after its folder.
  const folder = path.join(staging, 'packages', 'tranche');
  stagePackages(folder);
  const bill = JSON.parse(
    runNpm(folder, 'sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--offline'),
  );
  const installed = new Set(
    Object.entries(readJson(path.join(staging, `tranche-${version}`, 'package-lock.json')).packages)
      .filter(([place]) => place !== '')
      .map(([place, entry]) => `${place.replace(/^.*node_modules\//, '')}@${entry.version}`),
  );
  for (const component of bill.components) {
    const isInstalled = installed.has(`${component.name}@${component.version}`);
    component.properties.push({
      name: 'tranche:place',
      value: isInstalled ? 'installed' : 'built into the pages',
    });
  }
  write(sbomFile(file), bill);
}

/**
 * @param {string} file the release; its bill of materials is beside it
 * @param {{ startedOn: Date; isAudited: boolean }} how
 */
export function writeProvenance(file, { startedOn, isAudited }) {
  const source = readSource();
  write(provenanceFile(file), {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [file, sbomFile(file)].map((one) => ({
      name: path.basename(one),
      digest: { sha256: sha256(one) },
    })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:tranche:npm-run-release',
        externalParameters: { version },
        internalParameters: { isAudited },
        resolvedDependencies: [
          ...(source === null ? [] : [source]),
          {
            name: 'package-lock.json',
            digest: { sha256: sha256(path.join(root, 'package-lock.json')) },
          },
        ],
      },
      runDetails: {
        builder: {
          id: 'urn:tranche:npm-run-release',
          version: { node: process.version, npm: runNpm(root, '--version').trim() },
        },
        metadata: { startedOn: startedOn.toISOString(), finishedOn: new Date().toISOString() },
      },
    },
  });
}

/** The checked-out commit, or null without Git, as in a container. */
export function readSource() {
  const git = (...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const gitCommit = git('rev-parse', 'HEAD').trim();
    const isModified = git('status', '--porcelain').trim() !== '';
    return { name: 'source', digest: { gitCommit }, annotations: { isModified } };
  } catch {
    return null;
  }
}

/** @param {string} file */
export function sha256(file) {
  return createHash('sha256').update(fs.readFileSync(file)).digest('hex');
}

function runNpm(cwd, ...args) {
  try {
    return execFileSync('npm', [...args, '--package-lock-only', '--loglevel=error'], {
      cwd,
      encoding: 'utf8',
      shell: process.platform === 'win32',
    });
  } catch (error) {
    throw new Refusal(`\`npm ${args[0]}\` failed; a release needs npm 10.2 or newer.`, {
      cause: error,
    });
  }
}
