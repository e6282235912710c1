import fs from 'node:fs';
import path from 'node:path';
import { codeSpans, tableRows } from './check-documents.ts';

const document = 'docs/operators/asvs.md';
const states = ['met', 'not ours'];

/**
 * Checks that the OWASP ASVS assessment has every requirement of levels 1 and 2 once, and that the
 * files and tests that it names exist. `asvs-5.0.0.json` has the standard's numbers with their
 * levels.
 */
export function findAsvsGaps(root: string): string[] {
  const levels: Record<string, number> = JSON.parse(
    fs.readFileSync(path.join(root, 'scripts/asvs-5.0.0.json'), 'utf8'),
  );
  const problems: string[] = [];
  const seen = new Set<string>();
  const counts: Record<string, number> = {};
  for (const [number = '', level = '', asks = '', state = '', evidence = ''] of tableRows(
    root,
    document,
  )) {
    if (!/^\d/.test(number)) continue;
    const report = (problem: string) => problems.push(`${document}: ${number} ${problem}`);
    if (seen.has(number)) report('is listed twice');
    seen.add(number);
    counts[state] = (counts[state] ?? 0) + 1;
    if (levels[number] === undefined) report('is not a requirement of levels 1 and 2');
    else if (String(levels[number]) !== level) report(`has level ${levels[number]}`);
    if (asks === '' || evidence === '') report('has an empty cell');
    if (!states.includes(state)) report(`is "${state}": write ${states.join(', ')}`);
    for (const problem of findBadEvidence(root, evidence)) report(problem);
    if (state === 'met' && !isShown(evidence)) report('is met, but no test or document shows it');
  }
  for (const number of Object.keys(levels)) {
    if (!seen.has(number)) problems.push(`${document} does not have ${number}`);
  }
  const text = fs.readFileSync(path.join(root, document), 'utf8').replaceAll('\n', ' ');
  const sentence = `${counts.met} are met, ${counts['not ours']} are not ours.`;
  if (!text.includes(sentence)) problems.push(`${document} must say: ${sentence}`);
  return problems;
}

/**
 * Checks that a file in back quotes exists and has the test whose name follows in quotation marks.
 */
function* findBadEvidence(root: string, evidence: string): Generator<string> {
  for (const [, name = '', test] of evidence.matchAll(/`([^`]+)`(?: "([^"]+)")?/g)) {
    if (!isFile(name)) continue;
    const file = path.join(root, name);
    if (!fs.existsSync(file)) yield `names ${name}, which does not exist`;
    else if (test !== undefined && !hasTest(fs.readFileSync(file, 'utf8'), test)) {
      yield `names "${test}", which is not a test in ${name}`;
    }
  }
}

const isFile = (span: string) => /^[\w./-]+\.[a-z]+$/.test(span) && !span.startsWith('/');

/** The code may add to the test's name, so a part of the name is enough. */
function hasTest(source: string, name: string): boolean {
  return source.split('\n').some((line) => line.replaceAll('\\', '').includes(name));
}

/**
 * Evidence that names files of the program must also name a test. Documents need no other proof.
 */
function isShown(evidence: string): boolean {
  const files = codeSpans(evidence).filter(isFile);
  if (files.length === 0) return false;
  return (
    files.every((file) => file.endsWith('.md')) || files.some((file) => /\.test\.ts$/.test(file))
  );
}
