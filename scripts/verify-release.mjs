// Verifies a release in a clone of the commit that it was made from: `npm run release:verify --
// FILE`. It checks that the file and its bill of materials have the digests in the statement, that
// the statement names this commit and this lock file, and that every file in the release equals
// what this clone would make.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { Refusal, readJson, root, say } from './bootstrap/common.mjs';
import { stageRelease, version } from './release/stage.mjs';
import { provenanceFile, readSource, sbomFile, sha256 } from './release/statements.mjs';

const [file] = process.argv.slice(2);
if (file === undefined || !fs.existsSync(file)) {
  say('Name the release file: npm run release:verify -- tranche-VERSION.tar.gz');
  process.exit(1);
}
const staging = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-verify-'));
try {
  const problems = [...findWrongStatement(file), ...findWrongFiles(file, staging)];
  for (const problem of problems) say(problem);
  if (problems.length > 0) process.exitCode = 1;
  else say(`${file} is what this commit makes.`);
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  say(error.message);
  process.exitCode = 1;
} finally {
  fs.rmSync(staging, { recursive: true, force: true });
}

/** @param {string} release */
function findWrongStatement(release) {
  const statement = readJson(provenanceFile(release));
  if (statement === null) return [`${provenanceFile(release)} is missing or not JSON.`];
  const problems = [];
  for (const one of [release, sbomFile(release)]) {
    const subject = statement.subject.find(({ name }) => name === path.basename(one));
    if (!fs.existsSync(one) || subject?.digest.sha256 !== sha256(one)) {
      problems.push(`${one} does not have the SHA-256 that the statement names.`);
    }
  }
  const materials = statement.predicate.buildDefinition.resolvedDependencies;
  const find = (wanted) => materials.find(({ name }) => name === wanted);
  const source = find('source');
  if (source === undefined) problems.push('The statement names no commit.');
  else if (source.digest.gitCommit !== readSource()?.digest.gitCommit) {
    // A clone of another commit would make other files, so there is nothing to compare.
    throw new Refusal(`The statement names commit ${source.digest.gitCommit}; check it out first.`);
  } else if (source.annotations.isModified) {
    problems.push('The statement names changes that were not committed.');
  }
  const lock = sha256(path.join(root, 'package-lock.json'));
  if (find('package-lock.json')?.digest.sha256 !== lock) {
    problems.push("The statement names another package-lock.json than this clone's.");
  }
  return problems;
}

/**
 * @param {string} release
 * @param {string} folder
 */
function findWrongFiles(release, folder) {
  const ours = path.join(folder, 'ours');
  const theirs = path.join(folder, 'theirs');
  fs.mkdirSync(theirs);
  stageRelease(ours);
  execFileSync('tar', ['-xzf', release, '-C', theirs, '--strip-components=1']);
  const [here, there] = [listFiles(ours), listFiles(theirs)];
  const problems = [];
  for (const name of new Set([...here.keys(), ...there.keys()])) {
    if (!here.has(name)) problems.push(`${name} is only in the release.`);
    else if (!there.has(name)) problems.push(`${name} is missing from the release.`);
    else if (here.get(name) !== there.get(name)) problems.push(`${name} differs.`);
  }
  if (readJson(path.join(theirs, 'release.json'))?.version !== version) {
    problems.push(`The release is not version ${version}.`);
  }
  return problems.sort();
}

/**
 * The files of a folder with their digests. A link has its target instead of a digest.
 * @param {string} folder
 */
function listFiles(folder) {
  const files = new Map();
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const one = path.join(entry.parentPath, entry.name);
    if (entry.isDirectory()) continue;
    const content = entry.isSymbolicLink() ? `link to ${fs.readlinkSync(one)}` : sha256(one);
    const isExecutable = !entry.isSymbolicLink() && (fs.statSync(one).mode & 0o100) !== 0;
    files.set(path.relative(folder, one), `${content}${isExecutable ? ' executable' : ''}`);
  }
  return files;
}
