// Makes the file that a server installs: `npm run release [-- FILE]` writes tranche-VERSION.tar.gz.
// It contains the program, the built pages, and a package.json and lock file with only the packages
// that run it:
//
//   tar -xzf tranche-VERSION.tar.gz && cd tranche-VERSION && npm ci && bin/tranche serve
//
// Beside the file it writes FILE.cdx.json, the bill of materials, and FILE.provenance.json, which
// says which commit the file was made from. `npm run release:verify -- FILE` compares all three.
//
// It first asks the registry about the packages (scripts/audit.ts), and makes no file if one of
// them has a vulnerability that SECURITY.md forbids. The provenance says whether the registry
// answered.

import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { Refusal, say } from './bootstrap/common.mjs';
import { stageRelease, version } from './release/stage.mjs';
import {
  provenanceFile,
  readSource,
  sbomFile,
  writeProvenance,
  writeSbom,
} from './release/statements.mjs';

const startedOn = new Date();
const name = `tranche-${version}`;
const target = path.resolve(process.argv[2] ?? `${name}.tar.gz`);
const staging = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-release-'));
try {
  const isAudited = auditPackages();
  stageRelease(path.join(staging, name));
  execFileSync('tar', ['-czf', target, '-C', staging, name]);
  writeSbom(target, staging);
  writeProvenance(target, { startedOn, isAudited });
  say(`${target} is ready, with ${sbomFile('…')} and ${provenanceFile('…')} beside it.`);
  const source = readSource();
  if (source === null) say('This folder is not a Git checkout: the statement names no commit.');
  else if (source.annotations.isModified) {
    say('This folder has changes that are not committed; the statement says so.');
  }
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  say(error.message);
  process.exitCode = 1;
} finally {
  fs.rmSync(staging, { recursive: true, force: true });
}

/** Whether the registry answered about the packages. A build has to work without a network. */
function auditPackages() {
  const program = path.join(import.meta.dirname, 'audit.ts');
  const { status } = spawnSync(process.execPath, [program, '--exit-code'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status === 0) return true;
  if (status !== 3) throw new Refusal('No release is made from packages that the audit refuses.');
  say('The packages of this release were not audited. The statement beside it says so.');
  return false;
}
