// Asks the registry about known vulnerabilities in the packages and about their signatures: `npm
// run audit`. It fails for a wrong signature, and for a released package with a vulnerability of at
// least the severity that SECURITY.md names. It passes if the registry does not answer, so that a
// build works without a network; with `--exit-code` it then exits with 3.

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { stagePackages } from './release/stage.mjs';

const root = path.dirname(import.meta.dirname);
const answerMillisecondsMax = 60_000;

type Advisory = { title: string; url: string; severity: string };
type Vulnerability = {
  name: string;
  severity: string;
  via: (string | Advisory)[];
  nodes: string[];
};
export type AuditReport = { vulnerabilities?: Record<string, Vulnerability> };
export type SignatureReport = { invalid?: SignedPackage[]; missing?: SignedPackage[] };
type SignedPackage = { name: string; version: string };
type Times = Map<string, { days: number; fails: boolean }>;

/** The deadlines in SECURITY.md, by severity. */
export function readTimes(security: string): Times {
  const times: Times = new Map();
  const rows = security.matchAll(
    /^\| (critical|high|moderate|low) +\| (\d+) days +\| (\w+) +\|$/gm,
  );
  for (const [, severity = '', days = '', build = ''] of rows) {
    times.set(severity, { days: Number(days), fails: build === 'fails' });
  }
  return times;
}

/** Sorts the registry's reports into those that fail a build and those that are only shown. */
export function judgeVulnerabilities(
  report: AuditReport,
  released: ReadonlySet<string>,
  times: Times,
): { failures: string[]; notes: string[] } {
  const failures: string[] = [];
  const notes: string[] = [];
  for (const { name, severity, via, nodes } of Object.values(report.vulnerabilities ?? {})) {
    const isReleased = nodes.some((place) => released.has(place));
    const time = times.get(severity);
    const reasons = via.map((one) => (typeof one === 'string' ? one : `${one.title} ${one.url}`));
    const within = time === undefined ? '' : `, to be fixed within ${time.days} days`;
    const line = `${name}: ${severity}${isReleased ? within : ', not in a release'} (${reasons.join('; ')})`;
    if (isReleased && time?.fails !== false) failures.push(line);
    else notes.push(line);
  }
  return { failures, notes };
}

export function judgeSignatures({ invalid = [], missing = [] }: SignatureReport): {
  failures: string[];
  notes: string[];
} {
  const nameOf = ({ name, version }: SignedPackage) => `${name}@${version}`;
  return {
    failures: invalid.map((one) => `${nameOf(one)}: its signature is wrong`),
    notes: missing.map((one) => `${nameOf(one)}: the registry has no signature for it`),
  };
}

/** Asks npm, and returns null if the registry did not answer. */
function ask<Report extends object>(
  members: (keyof Report)[],
  args: string[] = [],
  folder = root,
): Report | null {
  const limits = ['--json', '--fetch-retries=0', '--fetch-timeout=10000'];
  const { stdout } = spawnSync('npm', ['audit', ...args, ...limits], {
    cwd: folder,
    encoding: 'utf8',
    timeout: answerMillisecondsMax,
    maxBuffer: 64 * 1024 * 1024,
    shell: process.platform === 'win32',
  });
  try {
    const report = JSON.parse(stdout) as Report;
    return members.every((member) => member in report) ? report : null;
  } catch {
    return null;
  }
}

/** The lock file's paths of the packages that a release installs or has built into its pages. */
function findReleased(): Set<string> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-audit-'));
  try {
    stagePackages(folder);
    const lock = JSON.parse(fs.readFileSync(path.join(folder, 'package-lock.json'), 'utf8'));
    return new Set(Object.keys(lock.packages));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

function say(sentence: string): void {
  process.stderr.write(`tranche: ${sentence}\n`);
}

if (import.meta.main) {
  const times = readTimes(fs.readFileSync(path.join(root, 'SECURITY.md'), 'utf8'));
  const report = ask<AuditReport>(['vulnerabilities']);
  const signatures = ask<SignatureReport>(['invalid', 'missing'], ['signatures']);
  if (report === null) say('The registry did not answer about vulnerabilities: none were checked.');
  if (signatures === null) say('The registry did not answer about signatures: none were verified.');
  const vulnerable = judgeVulnerabilities(report ?? {}, findReleased(), times);
  // The tools of the mutation tests have their own lock file. Their signatures could be verified
  // only once they are installed.
  const mutants = path.join(root, 'test/mutants');
  const tools = ask<AuditReport>(['vulnerabilities'], ['--package-lock-only'], mutants);
  const { notes } = judgeVulnerabilities(tools ?? {}, new Set(), times);
  const unsigned = judgeSignatures(signatures ?? {});
  for (const note of [...vulnerable.notes, ...notes, ...unsigned.notes])
    say(`For information: ${note}.`);
  const failures = [...vulnerable.failures, ...unsigned.failures];
  for (const failure of failures) say(failure);
  const isAnswered = report !== null && signatures !== null;
  if (failures.length > 0) process.exitCode = 1;
  else if (!isAnswered && process.argv.includes('--exit-code')) process.exitCode = 3;
}
